/** Compiles only if what the modules are inferred to export has the types of the .d.ts files. */

import * as browser from './modules/translate.js';
import * as node from './modules/node.js';
import * as polyfill from './modules/polyfill.js';
import type * as written from './types/translate.js';
import type * as writtenOfPolyfill from './types/polyfill.js';

type Both<Name extends keyof typeof written> = (typeof written)[Name][];

export const loadTranslator: Both<'loadTranslator'> = [
  browser.loadTranslator,
  node.loadTranslator,
];
export const TranslatorError: Both<'TranslatorError'> = [
  browser.TranslatorError,
  node.TranslatorError,
];
export const install: (typeof writtenOfPolyfill)['install'] = polyfill.install;
export const translatorOver: (typeof writtenOfPolyfill)['translatorOver'] =
  polyfill.translatorOver;
