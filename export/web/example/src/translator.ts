import { loadTranslator, type Translation, type Translator } from 'keras-vanilla-web';
import { useEffect, useState } from 'react';

/** The translator in a file, as soon as it is loaded, or why it is not. */
export function useTranslator(file: string) {
  const [state, setState] = useState<{ translator?: Translator; error?: Error }>({});
  useEffect(() => {
    const { signal, abort } = abortable();
    const loading = loadTranslator(file, { signal });
    loading.then(
      (translator) => signal.aborted || setState({ translator }),
      (error) => signal.aborted || setState({ error }),
    );
    return () => {
      abort();
      loading.then((translator) => translator.close(), () => {});
    };
  }, [file]);
  return state;
}

/** The translation of a text that changes: what an earlier text began is aborted. */
export function useTranslation(translator: Translator | undefined, text: string) {
  const [state, setState] = useState<{ translation?: Translation; error?: Error }>({});
  useEffect(() => {
    const { signal, abort } = abortable();
    translator?.translate(text, { signal }).then(
      (translation) => setState({ translation }),
      (error) => signal.aborted || setState({ error }),
    );
    return abort;
  }, [translator, text]);
  return state;
}

function abortable() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}
