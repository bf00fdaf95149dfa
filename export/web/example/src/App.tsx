import { useState } from 'react';
import { useTranslation, useTranslator } from './translator';

/** A text box, and the translation of what is in it. */
export function App({ file }: { file: string }) {
  const [source, setSource] = useState('');
  const { translator, error: loadingError } = useTranslator(file);
  const { translation, error } = useTranslation(translator, source);
  const problem = loadingError ?? error;
  return (
    <>
      <textarea
        aria-label="Text"
        rows={4}
        value={source}
        onChange={(event) => setSource(event.target.value)}
      />
      <output aria-label="Translation">{translation?.text}</output>
      {translation?.truncated && <p>It is cut off: the file gives no longer translations.</p>}
      {problem && <p role="alert">{problem.message}</p>}
      {!translator && !problem && <p>Loading…</p>}
    </>
  );
}
