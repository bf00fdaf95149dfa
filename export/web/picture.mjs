/**
 * Makes look_inside.png of a site that `keras-vanilla serve-web` serves, with a piece chosen:
 *
 *     node export/web/picture.mjs http://127.0.0.1:29731/ export/web/look_inside.png
 */

import { chromium } from 'playwright-core';

const [site, file] = process.argv.slice(2);
const executablePath = process.env.KERAS_VANILLA_CHROMIUM ?? '/usr/bin/chromium';
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
const page = await browser.newPage({ viewport: { width: 1120, height: 1340 } });
await page.goto(`${site}inside/index.html#place=2`); // without the tour
await page.waitForSelector('#without li'); // what is computed last
await page.screenshot({ path: file });
await browser.close();
