/** The module in Node.js, with LiteRT.js itself. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';

const setting = JSON.parse(readFileSync(process.env.KERAS_VANILLA_WEB_TEST));
const { files, texts, runtime } = setting;
const module = pathToFileURL(`${setting.page}/node.js`);
const { loadTranslator } = await import(module);

for (const name of Object.keys(texts)) {
  test(`${name}: the same text as from Python`, async () => {
    const translator = await loadTranslator(files[name], { runtime, signal: null });
    for (const [source, text] of texts[name]) {
      const result = translator.translateSentence(source);
      assert.equal(await result.then(({ text }) => text, ({ code }) => code), text);
    }
    translator.close();
  });
}

test('an output of as many tokens as the file gives, without its end, is truncated', async () => {
  const translator = await loadTranslator(files.short, { runtime });
  const flags = new Map();
  for (const [source, text] of texts.short) {
    const { truncated } = await translator.translate(source);
    flags.set(text.split(' ').length, truncated);
  }
  translator.close();
  const expected = [...flags.keys()].map((words) => [words, words === 8]);
  assert.deepEqual([...flags], expected); // 7 words and the end are 8 tokens
  assert.ok(flags.size > 5);
});

test('a program ends when it has closed its translator', () => {
  const program = `
    import { readFileSync } from 'node:fs';
    import { loadTranslator } from '${module}';
    const file = new Uint8Array(readFileSync('${files.translator}'));
    const translator = await loadTranslator(file, { runtime: '${runtime}' });
    console.log((await translator.translate('two')).text);
    translator.close();`;
  const options = ['--input-type=module', '--eval', program];
  const { stdout, stderr, status } = spawnSync(process.execPath, options, {
    encoding: 'utf8',
    timeout: 60_000,
  });
  assert.deepEqual([stdout, stderr, status], ['twee\n', '', 0]);
});

test('what is wrong has the same codes as in a browser', async () => {
  const code = (model, options) => loadTranslator(model, options).catch((error) => error.code);
  assert.equal(await code(`${files.echo}.none`, { runtime }), 'missing');
  assert.equal(await code(new Uint8Array(9), { runtime }), 'not-tflite');
  assert.equal(await code(files.echo, { runtime: `${runtime}/none` }), 'runtime');
  const signal = AbortSignal.abort('not wanted');
  await assert.rejects(loadTranslator(files.echo, { runtime, signal }), (error) =>
    ['not wanted', 'AbortError'].includes(error.name ?? error),
  );
});
