/** Compiles only if what the modules are inferred to export has the types of translate.d.ts. */

import * as browser from './modules/translate.js';
import * as node from './modules/node.js';
import type * as written from './types/translate.js';

type Both<Name extends keyof typeof written> = (typeof written)[Name][];

export const loadTranslator: Both<'loadTranslator'> = [
  browser.loadTranslator,
  node.loadTranslator,
];
export const TranslatorError: Both<'TranslatorError'> = [
  browser.TranslatorError,
  node.TranslatorError,
];
