/**
 * Makes look_inside.png of a site that `keras-vanilla serve-web` serves, with a piece of its
 * second example chosen:
 *
 *     node export/web/picture.mjs http://127.0.0.1:29731/ export/web/look_inside.png elle
 */

import { chromium } from 'playwright-core';

const [site, file, piece] = process.argv.slice(2);
const executablePath = process.env.KERAS_VANILLA_CHROMIUM ?? '/usr/bin/chromium';
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
const page = await browser.newPage({ viewport: { width: 1120, height: 1340 } });
await page.goto(`${site}inside/index.html#beams=4`); // without the tour
await page.locator('#examples button').nth(1).click();
await page.locator('#examples button[aria-pressed=true]').nth(0).waitFor();
const isComputed = () => !document.querySelector('[aria-busy=true]') && document.querySelector('#without li');
await page.waitForFunction(isComputed);
await page.locator('#target button', { hasText: piece }).first().click();
await page.waitForFunction(isComputed); // what it depends on is computed last
await page.evaluate(() => document.activeElement.blur());
await page.screenshot({ path: file });
await browser.close();
