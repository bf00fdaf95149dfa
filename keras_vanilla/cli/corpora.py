"""Parallel text as the commands name it: two files, or a public corpus."""

from keras_vanilla.cli.console import say


def add_corpus_options(command, target="target"):
    """`--source` and the like, for the commands that read parallel text."""
    add = command.add_argument
    add("--source", metavar="FILE", help="a sentence a line, or .gz of it")
    add(f"--{target}", metavar="FILE", help="its translation, line by line")
    add("--corpus", metavar="tfds:NAME", help="instead of files, a public corpus")
    add("--reverse", action="store_true", help="from its second language to its first")


def read_corpus(options, target, split):
    """The corpus that the options name, after saying which lines are left out.

    Args:
        options: with the attributes of `add_corpus_options`.
        target: path of the target file, or None.
        split: str, of a public corpus.
    """
    if (options.corpus is None) == (options.source is None):
        raise ValueError("Give either --source with its translation, or --corpus.")
    if options.corpus is None:
        if target is None:
            raise ValueError("--source needs the file of its translation.")
        if options.reverse:
            raise ValueError("--reverse is for --corpus; swap the two files.")
        return read_files(options.source, target)
    if target is not None:
        raise ValueError("--corpus has its translations: give no file of them.")
    return read_public(options.corpus, split, options.reverse)


def read_files(source, target):
    """The corpus of two files, after saying which of their lines are left out."""
    from keras_vanilla.text import ParallelCorpus

    return _told(ParallelCorpus.from_files(source, target), f"{source} and {target}")


def read_public(name, split, reverse=False):
    """A public corpus, after saying which of its pairs are left out."""
    from keras_vanilla.text import ParallelCorpus

    if not name.startswith("tfds:"):
        raise ValueError(
            "--corpus expects tfds: and a name of tensorflow-datasets, such as "
            f"tfds:ted_hrlr_translate/pt_to_en. Received: {name}"
        )
    corpus = ParallelCorpus.from_tfds(name, split, reverse=reverse)
    return _told(corpus, f"{name} {split}")


def read_public_validation(name, reverse=False):
    """Its validation split, or None if it has none."""
    from keras_vanilla.text.public import split_names

    if "validation" not in split_names(name):
        return None
    return read_public(name, "validation", reverse)


def _told(corpus, name):
    from keras_vanilla.text.lines import some_of

    for reason, lines in corpus.report.items():
        say(
            f"{name}: {len(lines)} pairs are left out, {reason}: lines {some_of(lines)}"
        )
    return corpus
