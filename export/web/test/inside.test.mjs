/** The page that looks inside, as its readers use it. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blank, DEVICES, faults, open, photograph, setting } from './setting.mjs';

const { partners } = setting;
const URL_OF_PAGE = `${setting.urls.site}inside/index.html`;
const TEXT = 'three red house';

/** The page with a text, when everything is computed. */
async function look(text, device = 'desktop', more = '') {
  const page = await open(`${URL_OF_PAGE}#text=${encodeURIComponent(text)}${more}`, device);
  await searched(page);
  return page;
}

async function searched(page) {
  await page.waitForSelector('#searches:not([aria-busy=true]) #hypotheses li');
}

/** The names of the translation's pieces, without their probabilities. */
function pieces(page, root = '#target') {
  return page.evaluate((root) => {
    const buttons = document.querySelectorAll(`${root} button`);
    return [...buttons].map((button) => button.firstChild.textContent);
  }, root);
}

const text = (page, id) => page.innerText(`#${id}`);

test('a sentence is translated, and its source words are found by attention', async () => {
  const page = await look(TEXT);
  const words = await pieces(page);
  assert.equal(words.at(-1), '⟨end⟩');
  const expected = TEXT.split(' ').reverse().map((word) => partners[word]);
  assert.equal(words.slice(0, -1).join(''), expected.join(''));
  for (const [place, word] of words.entries()) {
    if (!expected.includes(word)) continue; // a piece of a word
    await page.locator('#target button').nth(place).click();
    await page.waitForFunction((word) => document.querySelector('#looks').textContent.includes(`“${word}”`), word);
    assert.match(await text(page, 'looks'), new RegExp(`reads “${sourceOf(word)}”`));
  }
  assert.deepEqual(page.errors, []);
});

function sourceOf(word) {
  return Object.keys(partners).find((name) => partners[name] === word);
}

test('without the word that a piece translates, the piece becomes improbable', async () => {
  const page = await look(TEXT);
  const place = (await pieces(page)).indexOf('rood');
  await page.locator('#target button').nth(place).click();
  const whole = '“rood” in the whole sentence';
  await page.waitForFunction((whole) => document.querySelector('#without').textContent.startsWith(whole), whole);
  const rows = await page.locator('#without li').allInnerTexts();
  assert.equal(rows.length, 1 + TEXT.split(' ').length);
  assert.match(rows[0], /^“rood” in the whole sentence\s+[\d>.]+ %$/);
  assert.match(rows[1], /^without “red”\s+[\d<.]+ %$/); // the lowest first
  const share = (row) => Number(/([\d.]+) %$/.exec(row)[1]);
  assert.ok(share(rows[0]) > 90 && share(rows[1]) < 10, rows.join());
  const decides = await page.innerText('#decides');
  assert.match(decides, /^“red” matters most: without it, “rood” has .+ % instead of .+ %\.$/);
});

test('a word is left out by choosing its row, and the browser leads back', async () => {
  const page = await look(TEXT);
  const place = (await pieces(page)).indexOf('rood');
  await page.locator('#target button').nth(place).click();
  await page.waitForFunction(() => document.querySelector('#without').textContent.startsWith('“rood”'));
  await page.locator('#without button', { hasText: 'without “red”' }).click();
  const isTranslated = (words) =>
    page.waitForFunction((text) => document.querySelector('#translation').textContent === text, words.join(' '));
  await isTranslated([partners.house, partners.three]);
  assert.equal(await page.inputValue('#source'), 'three house');
  await page.goBack();
  await isTranslated([partners.house, partners.red, partners.three]);
  assert.equal(await page.inputValue('#source'), TEXT);
  assert.deepEqual(page.errors, []);
});

test('another piece is chosen, the model goes on from there, and comes back', async () => {
  const page = await look(TEXT);
  const before = await pieces(page);
  const other = page.locator('#next button[aria-pressed=false]').first();
  const name = (await other.innerText()).split('\n')[0];
  await other.click();
  await page.waitForFunction((name) => document.querySelector('#target button').firstChild.textContent === name, name);
  await page.waitForFunction(() => document.querySelector('#target button:last-child').textContent.includes('end'));
  const after = await pieces(page);
  assert.equal(after.at(-1), '⟨end⟩');
  assert.notDeepEqual(after, before);
  await searched(page);
  const address = page.url();
  assert.match(address, /#text=three.*&ids=\d+/);

  const again = await open(address); // a link opens the page as it is
  await searched(again);
  assert.deepEqual(await pieces(again), after);

  await page.goBack(); // undoes the choice
  await page.waitForFunction((first) => document.querySelector('#target button').firstChild.textContent === first, before[0]);
  await searched(page);
  assert.deepEqual(await pieces(page), before);
  await page.goForward();
  await page.waitForFunction((first) => document.querySelector('#target button').firstChild.textContent === first, after[0]);
  await page.waitForSelector('#greedy:not([hidden])');
  await searched(page);

  await page.click('#greedy');
  await page.waitForFunction((first) => document.querySelector('#target button').firstChild.textContent === first, before[0]);
  await searched(page);
  assert.deepEqual(await pieces(page), before);
  assert.equal(await page.isVisible('#greedy'), false);
});

test('the second-best translation says where it parts from the best', async () => {
  const page = await look(TEXT);
  const items = page.locator('#hypotheses li');
  assert.ok((await items.count()) >= 2);
  assert.doesNotMatch(await items.first().innerText(), /Parts/);
  assert.match(await items.nth(1).innerText(), /Parts (after “.+”|at the beginning): “.+” \(.+ %\), not “.+” \(.+ %\)/);
  await items.nth(1).locator('button').click();
  const second = (await items.nth(1).locator('button').innerText()).replaceAll(' ', '');
  await page.waitForFunction((second) => {
    const names = [...document.querySelectorAll('#target button')].map((b) => b.firstChild.textContent);
    return names.slice(0, -1).join('') === second;
  }, second);
});

test('the number of beams changes the tree, and one beam is the model\'s own choice', async () => {
  const page = await look(TEXT);
  const nodes = () => page.locator('#tree g').count();
  const many = await nodes();
  await page.fill('#beams', '1');
  await page.locator('#beams').blur();
  await page.waitForFunction(() => document.querySelectorAll('#hypotheses li').length === 1);
  const words = await pieces(page);
  assert.equal(await nodes(), words.length + 1); // and the start
  assert.ok(many > (await nodes()));
  assert.match(page.url(), /beams=1/);
});

test('a high temperature makes what is likely less so', async () => {
  const page = await look(TEXT);
  const first = () => page.locator('#next button').first().textContent();
  const before = await first();
  await page.fill('#temperature', '2');
  await page.waitForFunction((before) => document.querySelector('#next button').textContent !== before, before);
  const percent = (label) => Number(/([\d.]+) %/.exec(label)[1]);
  assert.ok(percent(await first()) < percent(before));
  await page.click('#draw');
  await page.waitForSelector('#greedy:not([hidden])');
  await searched(page);
  assert.equal((await pieces(page)).at(-1), '⟨end⟩');
  assert.deepEqual(page.errors, []);
});

test('it is seen what was drawn, also when it is what was there before', async () => {
  const page = await look(TEXT);
  const before = await pieces(page);
  await page.locator('#target button').nth(1).click();
  await page.fill('#temperature', '0.1');
  for (const count of [1, 2]) {
    await page.click('#draw');
    await page.waitForFunction((count) => document.querySelector('#drawn').textContent.startsWith(`Draw ${count}: `), count);
    await page.waitForFunction((drawn) => document.querySelectorAll('#target .drawn').length === drawn, before.length - 1);
    await searched(page);
    assert.deepEqual(await pieces(page), before);
    assert.match(await text(page, 'drawn'), /^Draw \d: “.+”\. Each piece is the most probable/);
  }
  await page.click('#greedy');
  await page.waitForFunction(() => document.querySelectorAll('.drawn').length === 0);
  assert.equal(await text(page, 'drawn'), '');
});

test('it is used with the keyboard alone', async () => {
  const page = await open(`${URL_OF_PAGE}#text=`);
  await page.focus('#source');
  await page.keyboard.type(TEXT);
  await searched(page);
  const focused = () => page.evaluate(() => document.activeElement.firstChild?.textContent);
  for (const example of setting.examples) { // which stand between the text and the pieces
    await page.keyboard.press('Tab');
    assert.equal(await focused(), example);
  }
  await page.keyboard.press('Tab');
  const words = await pieces(page);
  assert.equal(await focused(), words[0]);
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction((word) => document.querySelector('#looks').textContent.includes(`“${word}”`), words[1]);
  assert.equal(await focused(), words[1]);
  await page.keyboard.press('End');
  await page.waitForFunction(() => document.activeElement.firstChild?.textContent === '⟨end⟩');
  await page.locator('#encoder input').first().focus();
  await page.keyboard.press('ArrowRight');
  assert.match(await page.evaluate(() => document.activeElement.ariaLabel), /Layer 1, head 1/);
});

test('the keyboard enters each row once, and skips what comes before the content', async () => {
  const page = await look(TEXT);
  const address = page.url();
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'skip');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'main');
  assert.equal(page.url(), address);
  await page.waitForSelector('#without button');
  for (const rows of ['#target', '#next', '#without', '#hypotheses', '#encoder .weights']) {
    const [all, stops] = await page.evaluate((rows) => {
      const buttons = [...document.querySelectorAll(`${rows} button`)];
      return [buttons.length, buttons.filter(({ tabIndex }) => tabIndex === 0).length];
    }, rows);
    assert.ok(all > 1, rows);
    assert.equal(stops, 1, rows);
  }
  const first = page.locator('#without button').first();
  await first.focus();
  await page.keyboard.press('ArrowDown');
  assert.ok(await page.locator('#without button').nth(1).evaluate((button) => button === document.activeElement));
  assert.equal(page.url(), address); // the arrow has not left out a word
  await page.locator('#encoder .weights button').first().focus();
  await page.keyboard.press('ArrowDown');
  assert.equal(await page.evaluate(() => document.activeElement.ariaPressed), 'true');
  assert.equal(await page.evaluate(() => document.activeElement.dataset.row), '1');
});

test('labels are spoken as they are read, with a space before the number', async () => {
  const page = await look(TEXT);
  await page.waitForSelector('#without button');
  const texts = await page.evaluate(() => {
    const labels = document.querySelectorAll('.piece, .shaded, #without li, #hypotheses li');
    return [...labels].map(({ textContent, ariaLabel }) => ariaLabel ?? textContent);
  });
  assert.ok(texts.length > 10);
  assert.deepEqual(texts.filter((text) => !/\s[<>]?[\d.]+ %/u.test(text)), []);
  assert.deepEqual(await faults(page), []);
});

test('what belongs to another sentence is dimmed and busy until it is computed', async () => {
  const page = await look(TEXT);
  await page.waitForFunction(() => !document.querySelector('[aria-busy=true]'));
  const parts = ['translation', 'target', 'details', 'searches', 'inside-encoder', 'inside-decoder'];
  const states = await page.evaluate((parts) => {
    const source = document.querySelector('#source');
    source.value = 'two three';
    source.dispatchEvent(new Event('input', { bubbles: true }));
    return parts.map((id) => document.getElementById(id)).map((part) => [part.ariaBusy, getComputedStyle(part).opacity]);
  }, parts);
  assert.ok(states.every(([isBusy, opacity]) => isBusy === 'true' && Number(opacity) < 1), states.join());
  await page.waitForFunction(() => document.querySelector('#translation').textContent.endsWith('twee'));
  await page.waitForFunction(() => !document.querySelector('[aria-busy=true]'));
});

test('no result of the text before is clear again, whatever is computed or chosen meanwhile', async () => {
  const page = await look(TEXT);
  await page.waitForFunction(() => !document.querySelector('[aria-busy=true]'));
  const [text, expected] = ['two three', 'drie twee'];
  const isPlaying = await page.evaluate(([text, expected]) => {
    const at = (selector) => document.querySelector(selector);
    const set = (id, value, type) => {
      at(id).value = value;
      at(id).dispatchEvent(new Event(type, { bubbles: true }));
    };
    const shown = { translation: '#translation', target: '#translation', searches: '#hypotheses button' };
    window.early = []; // what was cleared while it still had another text
    new MutationObserver((changes) => {
      for (const { target: { id, ariaBusy } } of changes) {
        const isOld = shown[id] && at(shown[id]).textContent !== expected;
        if (ariaBusy === 'false' && isOld) window.early.push(id);
      }
    }).observe(document.body, { subtree: true, attributeFilter: ['aria-busy'] });
    set('#beams', 3, 'change'); // a search begins
    at('#play').click();
    set('#source', text, 'input');
    const isPlaying = at('#play').textContent === 'Stop';
    set('#temperature', 1.5, 'input');
    set('#beams', 2, 'change');
    at('#target button:last-child').click();
    at('#next button[aria-pressed=false]').click();
    return isPlaying;
  }, [text, expected]);
  assert.equal(isPlaying, false);
  await page.waitForFunction((text) => document.querySelector('#hypotheses button').textContent === text, expected);
  await page.waitForFunction(() => !document.querySelector('[aria-busy=true]'));
  assert.deepEqual(await page.evaluate(() => window.early), []);
  assert.equal(await page.inputValue('#source'), text);
  assert.match(page.url(), /#text=two(%20|\+)three&.*beams=2&temperature=1\.5/);
  assert.deepEqual(page.errors, []);
});

test('another temperature waits for the first piece of a translation', async () => {
  const page = await look(TEXT);
  await page.evaluate(() => {
    document.querySelector('#greedy').click(); // begins with no piece
    const temperature = document.querySelector('#temperature');
    temperature.value = 1.5;
    temperature.dispatchEvent(new Event('input', { bubbles: true }));
  });
  await page.waitForFunction(() => document.querySelector('#temperature-value').textContent === '1.5');
  await searched(page);
  assert.equal(await text(page, 'problem'), '');
});

test('the keyboard\'s focus stays in a row whose choice makes another one of it', async () => {
  const page = await look(TEXT);
  await page.waitForFunction(() => !document.querySelector('[aria-busy=true]'));
  for (const row of ['#hypotheses', '#next', '#without']) {
    const rows = page.locator(row);
    assert.match(await rows.evaluate((row) => document.getElementById(row.getAttribute('aria-describedby')).textContent), /arrow keys/);
    const button = await rows.locator('button').nth(1).elementHandle();
    await button.focus();
    await page.keyboard.press('Enter');
    await page.waitForFunction((button) => !button.isConnected, button);
    await page.waitForFunction(() => !document.querySelector('[aria-busy=true]'));
    assert.ok(await rows.evaluate((row) => row.contains(document.activeElement)), row);
  }
});

test('what was computed before is not timed', async () => {
  const page = await look(TEXT);
  assert.match(await text(page, 'time'), /^The encoder took \d+ ms\. A step took [\d.]+ ms\.$/);
  for (const [sentence, isTimed] of [['two three', true], [TEXT, false]]) {
    await page.fill('#source', sentence);
    const translation = sentence.split(' ').reverse().map((word) => partners[word]).join(' ');
    await page.waitForFunction((text) => document.querySelector('#translation').textContent === text, translation);
    await page.waitForFunction(() => !document.querySelector('[aria-busy=true]'));
    assert.equal((await text(page, 'time')).includes('encoder'), isTimed);
  }
});

test('all columns of the encoder\'s table are in sight, and the ring of a row is whole', async () => {
  const page = await look('three red house two blue house one green house three red house two blue house');
  const fits = () => page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.querySelector('#encoder .weights');
    return scrollWidth <= clientWidth;
  });
  const count = await page.locator('#encoder thead th').count();
  assert.ok(count >= 16, `${count}`);
  assert.ok(await fits());
  await page.setViewportSize({ width: 320, height: 800 });
  assert.equal(await fits(), false); // it is not only that the box grows
  await page.keyboard.press('Tab'); // from now on, what has the focus has a ring
  await page.locator('#encoder .weights button').first().focus();
  const offset = await page.evaluate(() => getComputedStyle(document.activeElement).outlineOffset);
  assert.ok(Number.parseFloat(offset) <= -2, offset);
});

test('what cannot be encoded is said, and an address that means nothing is ignored', async () => {
  const page = await open(`${URL_OF_PAGE}#text=${'one '.repeat(40)}`);
  await page.waitForFunction(() => document.querySelector('#problem').textContent !== '');
  assert.match(await text(page, 'problem'), /^The text has \d+ bytes, and this model takes at most 131\.$/);
  await page.fill('#source', 'one '.repeat(31));
  await page.waitForFunction(() => document.querySelector('#problem').textContent.includes('pieces'));
  assert.match(await text(page, 'problem'), /^The text has \d+ pieces; this model takes at most 29\.$/);
  await page.fill('#source', 'two');
  await page.waitForFunction(() => document.querySelector('#translation').textContent === 'twee');
  await page.fill('#source', 'one '.repeat(40));
  await page.waitForFunction(() => document.querySelector('#translation').textContent === '');
  const odd = await look('two', 'desktop', '&ids=99999.7.x&place=-3&beams=99&temperature=no');
  assert.deepEqual(await pieces(odd), await pieces(await look('two')));
  assert.deepEqual(odd.errors, []);
});

test('another address in the same window is read, and what fails is said', async () => {
  const page = await look(TEXT);
  await page.evaluate(() => (location.hash = '#text=two%20three&beams=2'));
  await page.waitForFunction(() => document.querySelector('#source').value === 'two three');
  // Until it is translated, the translation of the text before is shown.
  await page.waitForFunction(() => document.querySelector('#target').innerText.includes('twee'));
  await searched(page);
  assert.equal((await pieces(page)).join(' '), 'drie twee ⟨end⟩');
  assert.equal(await page.inputValue('#beams'), '2');
  await page.evaluate(() => void Promise.reject(new Error('It failed.')));
  await page.waitForFunction(() => document.querySelector('#problem').textContent === 'It failed.');
});

test('the page that translates leads here and back, with the text', async () => {
  const page = await open(`${setting.urls.site}#text=two%20three`);
  await page.waitForFunction(() => document.querySelector('#inside').href.includes('#text=two'));
  await page.click('#inside');
  await searched(page);
  assert.equal(await page.inputValue('#source'), 'two three');
  await page.click('#translate');
  await page.waitForFunction(() => document.querySelector('#translation')?.textContent === 'drie twee');
});

for (const device of Object.keys(DEVICES)) {
  test(`${device}: nothing is wider than the screen, and every text can be read`, async () => {
    const page = await look('small large river stone house tree red green blue', device);
    await page.waitForSelector('#without li');
    await page.locator('details').last().locator('summary').click();
    const wide = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );
    assert.equal(wide, 0);
    const texts = await page.evaluate(contrasts);
    for (const name of ['small', 'button', 'td', 'text', 'hint']) {
      assert.ok(texts.some(([of]) => of.startsWith(name)), name);
    }
    const poor = texts.filter(([, contrast]) => contrast < 4.5);
    assert.deepEqual(poor, []);
    const small = await page.evaluate(tooSmall);
    if (device === 'phone') assert.deepEqual(small, []);
    const regions = await page.evaluate(scrolling);
    if (device === 'phone') assert.ok(regions.length > 0);
    const names = regions.map(({ name }) => name);
    assert.deepEqual(regions, names.map((name) => ({ name, role: 'region', tabIndex: 0, hasShadow: true })));
    assert.ok(names.every((name) => name) && new Set(names).size === names.length, names.join());
    await photograph(page, `${device}-inside`);
  });
}

/** In the page: each visible text, and its contrast to what lies behind it. */
function contrasts() {
  const context = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const painted = (...colors) => {
    for (const color of colors) {
      context.fillStyle = color;
      context.fillRect(0, 0, 1, 1);
    }
    return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const own = getComputedStyle(element).backgroundColor;
    return element.parentElement ? [...behind(element.parentElement), own] : [own];
  };
  return [...document.querySelectorAll('body *')]
    .filter((element) => element.checkVisibility())
    .filter(({ childNodes }) => [...childNodes].some(({ nodeType, data }) => nodeType === 3 && data.trim()))
    .map((element) => [element, getComputedStyle(element)])
    .filter(([, { color }]) => color !== 'rgba(0, 0, 0, 0)')
    .map(([element, { color, fill }]) => {
      const colors = behind(element);
      const text = element.localName === 'text' ? fill : color;
      const [dark, light] = [painted(...colors), painted(...colors, text)].map(luminance).sort((a, b) => a - b);
      return [element.getAttribute('class') || element.localName, (light + 0.05) / (dark + 0.05)];
    });
}

/** In the page: the boxes that scroll sideways, but for the row of examples. */
function scrolling() {
  return [...document.querySelectorAll('body *:not(#examples, textarea)')]
    .filter(({ scrollWidth, clientWidth }) => clientWidth > 0 && scrollWidth > clientWidth + 1)
    .map((element) => [element, getComputedStyle(element)])
    .filter(([, { overflowX }]) => overflowX === 'auto')
    .map(([{ ariaLabel: name, role, tabIndex }, { backgroundImage }]) => {
      return { name, role, tabIndex, hasShadow: backgroundImage.includes('gradient') };
    });
}

/** In the page: buttons that are too small for a finger. */
function tooSmall() {
  return [...document.querySelectorAll('button, input')]
    .filter((button) => button.checkVisibility())
    .map((button) => [button.id || button.textContent, button.getBoundingClientRect()])
    .filter(([, { width, height }]) => width < 24 || height < 24)
    .map(([name, { width, height }]) => [name, width, height]);
}

test('a piece that is a space has a name that can be read out', async () => {
  const page = await look('é é');
  assert.match(await text(page, 'attended'), /^⟨space⟩/u); // before the first word
  assert.doesNotMatch(await page.innerText('body'), /⟨code⟩|␣|“”/u);
  const column = page.getByRole('columnheader', { name: '⟨space⟩' });
  assert.ok((await column.count()) > 0);
});

test('a file with a damaged vocabulary is called damaged', async () => {
  const page = await blank();
  await page.route('**/inside.tflite', async (route) => {
    const body = await (await route.fetch()).body();
    body[body.indexOf('"pieces"')] = 0x21;
    await route.fulfill({ body });
  });
  await page.goto(`${URL_OF_PAGE}#text=two`);
  await page.waitForSelector('[data-state=failed]');
  assert.match(await text(page, 'reason'), /^The file is damaged: .+ checksum/);
});

test('every field has a name, and without JavaScript a sentence says what is missing', async () => {
  const page = await look(TEXT);
  assert.ok(await page.getByRole('textbox', { name: 'A sentence, in English' }).isVisible());
  assert.ok(await page.getByRole('toolbar', { name: 'The pieces of the translation' }).isVisible());
  const translation = page.getByRole('status', { name: 'Its translation, in Dutch' });
  assert.equal(await translation.innerText(), TEXT.split(' ').reverse().map((word) => partners[word]).join(' '));
  assert.ok(await page.getByRole('slider', { name: /Temperature/ }).isVisible());
  assert.ok(await page.getByRole('spinbutton', { name: 'Beams' }).isVisible());
  assert.ok(await page.getByRole('list', { name: /probable pieces/ }).isVisible());
  const without = await blank({ javaScriptEnabled: false });
  await without.goto(URL_OF_PAGE);
  const shown = await without.innerText('body');
  assert.match(shown, /runs a Transformer in your browser, with JavaScript/);
  assert.doesNotMatch(shown, /Loading|Play/);
});
