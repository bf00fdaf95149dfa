/** What tests/web prepared, and a browser to look at it with. */

import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after } from 'node:test';
import { chromium } from 'playwright-core';

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

export const setting = JSON.parse(readFileSync(process.env.KERAS_VANILLA_WEB_TEST));
export const DEVICES = {
  desktop: { viewport: { width: 1280, height: 800 } },
  phone: {
    viewport: { width: 390, height: 844 },
    deviceScaleFactor: 2,
    isMobile: true,
    hasTouch: true,
    colorScheme: 'dark',
  },
};
const QUIET = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

const browser = await chromium.launch({
  executablePath: setting.chromium,
  args: [...QUIET, ...(setting.arguments ?? [])],
});
after(() => browser.close());
mkdirSync(setting.screenshots, { recursive: true });

/** A page of its own, opened at a server's address and done loading. */
export async function open(url, device = 'desktop') {
  const page = await blank(DEVICES[device]);
  await page.goto(url);
  await settled(page);
  return page;
}

/** An empty page of its own. */
export async function blank(options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  page.errors = [];
  page.on('pageerror', (error) => page.errors.push(error));
  return page;
}

export async function settled(page) {
  await page.waitForSelector('[data-state=ready],[data-state=failed]');
}

/** Types a text and returns its translation. */
export async function type(page, text) {
  await page.fill('#source', text);
  await translated(page);
  return page.innerText('#translation');
}

export async function translated(page) {
  await page.waitForFunction(() => !document.body.classList.contains('stale'));
}

/** What axe finds on a page by all or some of its rules, with the elements that break them. */
export async function faults(page, rules) {
  await page.evaluate(readFileSync(AXE, 'utf8'));
  const options = rules ? { runOnly: rules } : {};
  const { violations } = await page.evaluate((options) => axe.run(options), options);
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
}

export async function photograph(page, name) {
  await page.screenshot({ path: `${setting.screenshots}/${name}.png`, fullPage: true });
}
