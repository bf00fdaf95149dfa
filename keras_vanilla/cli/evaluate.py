"""`keras-vanilla evaluate`."""

import json

from keras_vanilla.cli.console import add_command, add_search_options, search_settings
from keras_vanilla.cli.corpora import add_corpus_options, read_corpus


def add_to(commands):
    """Adds the command."""
    command = add_command(commands, "evaluate", run, "BLEU and chrF of a model")
    add = command.add_argument
    add("model", metavar="MODEL", help="a .keras file")
    add_corpus_options(command, target="reference")
    add("--split", help="of a public corpus (test)")
    add_search_options(command)
    add("--lowercase", action="store_true", help="ignore case")
    add("--tokenized", action="store_true", help="BLEU of text split by Moses's rules")
    add("--language", metavar="L", help="the target's, for Moses's rules (en)")
    add("--sentences", type=int, default=3, metavar="N", help="worst and best to show")
    add("--json", action="store_true", help="everything as one JSON object")


def run(options):
    """Runs the command."""
    from keras_vanilla.translation.evaluation import score, worst_and_best
    from keras_vanilla.translation.translator import Translator

    if options.sentences < 0:
        raise ValueError(
            f"--sentences must be at least 0. Received: {options.sentences}"
        )
    settings = search_settings(options)
    if options.language and not options.tokenized:
        raise ValueError("--language is for --tokenized.")
    if options.split and options.corpus is None:
        raise ValueError("--split is for --corpus.")
    translator = Translator.load(options.model)
    corpus = read_corpus(options, options.reference, options.split or "test")
    result = score(
        translator,
        corpus,
        **settings,
        lowercase=options.lowercase,
        tokenized=(options.language or "en") if options.tokenized else None,
    )
    worst, best = worst_and_best(
        corpus, result.pop("translations"), options.sentences, options.lowercase
    )
    result |= {"lines": len(corpus), "worst": worst, "best": best}
    print(
        json.dumps(result, ensure_ascii=False, indent=2)
        if options.json
        else _words(result)
    )


def _words(result):
    """The result as a person reads it."""
    said = [
        f"BLEU {result['bleu']:.2f}  chrF {result['chrf']:.2f}  "
        f"({result['lines']} lines)",
        result["signature"],
    ]
    if result["unfinished"]:
        said.append(f"{len(result['unfinished'])} translations have no end")
    for name in ("worst", "best"):
        for one in result[name]:
            mark = "  (no end)" if one["line"] in result["unfinished"] else ""
            said.append(
                f"\n{name}, line {one['line']}, chrF {one['chrf']:.1f}{mark}\n"
                f"  source      {one['source']}\n"
                f"  translated  {one['translation']}\n"
                f"  reference   {one['reference']}"
            )
    return "\n".join(said)
