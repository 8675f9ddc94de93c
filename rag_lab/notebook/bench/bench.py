"""`Bench`: change a toggle, run, and see what it moved, beside the setting before."""

from __future__ import annotations

from rag_lab.notebook.bench.bench_work import BenchWork


class Bench(BenchWork):
    """Toggles for every stage, one question under several settings, and a quick comparison of them.

    The setting that was run last stays beside the new one, and both answer the same question. A bench goes on where
    the last one of its name stood in this kernel, so running its cell again undoes nothing.

    Args:
        documents: a data set's name, its folder, a folder of files, a `Dataset`, LangChain's documents, or a
            `Pipeline`.
        config: where the toggles start; the pipeline's, or the defaults, where None.
        question: text or id of the question in the box; where empty, the last bench's, or the data set's first.
        metrics: what `try_on` measures, the one that decides first; what the labels allow where none is given.
        name: of the bench; give a second bench of a notebook another one.
        home: where indexes and results are remembered; the workbench's folder where None.

    Example:
        >>> bench = Bench("plant_docs")
        >>> bench.set("rerank.name", "query_likelihood")
        >>> bench.config.rerank.name
        'query_likelihood'
    """

    def _ipython_display_(self) -> None:
        from rag_lab.notebook.bench.widget import BenchWidget

        BenchWidget(self).show()
