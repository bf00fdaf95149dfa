"""How many translations of one file differ between Python and Node.js.

    npm ci --ignore-scripts --prefix export/web
    python tests/benchmarks/node_agreement.py FILE.tflite --source test.en

LiteRT's interpreter translates in Python, LiteRT.js in Node.js. Lines of several
sentences are left out, because the callers split them.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

sys.path.extend(map(str, Path(__file__).resolve().parents[1].glob("support/**/")))

import model_and_lines
from text_form import TextForm

ROOT = Path(__file__).resolve().parents[2]
SENTENCE_END = re.compile(r"[.!?…][\"”’)]*\s")
SCRIPT = """
const [caller, model, runtime] = process.argv.slice(1);
const { loadTranslator } = await import(caller);
const translator = await loadTranslator(model, { runtime });
let input = '';
for await (const chunk of process.stdin) input += chunk;
const results = [];
for (const text of JSON.parse(input)) {
  const { text: translation, score } = await translator.translateSentence(text);
  results.push([translation, score]);
}
await translator.close();
process.stdout.write(JSON.stringify(results));
"""


def main():
    args = model_and_lines.parser(__doc__, lines=1000).parse_args()
    lines = model_and_lines.first_lines(args.source, 10 * args.lines)
    lines = [line for line in dict.fromkeys(lines) if not SENTENCE_END.search(line)]
    lines = lines[: args.lines]
    results = map(TextForm(args.model), lines)
    here = [(result["text"], float(result["score"])) for result in results]
    there = in_node(Path(args.model).resolve(), lines)
    different = 0
    rows = zip(lines, here, there, strict=True)
    for number, (line, ours, theirs) in enumerate(rows, start=1):
        if ours[0] != theirs[0]:
            different += 1
            print(f"  line {number}: {line}\n    Python  {ours[0]} ({ours[1]:.3f})")
            print(f"    Node    {theirs[0]} ({theirs[1]:.3f})")
    gaps = [abs(a[1] - b[1]) for a, b in zip(here, there, strict=True) if a[0] == b[0]]
    print(f"{different} of {len(lines)} translations differ")
    print(f"scores of the others: at most {max(gaps):.3f} apart")


def in_node(model, lines):
    """Each line's translation and score, by LiteRT.js in Node.js."""
    caller = ROOT / "keras_vanilla" / "web" / "page" / "node.js"
    runtime = ROOT / "export" / "web" / "node_modules" / "@litertjs"
    node = ["node", "--input-type=module", "--eval", SCRIPT, "--"]
    result = subprocess.run(
        [*node, str(caller), str(model), str(runtime)],
        input=json.dumps(lines),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(result.stdout)


if __name__ == "__main__":
    main()
