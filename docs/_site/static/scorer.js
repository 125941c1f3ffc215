// Orders the results of the search. Pages that explain come before records and generated lists.
// A page with all words of the query in its title comes before pages with a section about them.
const RECORDS = /^(changelog|rationale|benchmarks|conformance|source\/|reference\/(codes|documents|go\/|command\/))/;
const GUIDES = /^(install|choose|guide|jobs|cookbook|troubleshooting|guides\/|reference\/(c-library|python\/))/;
const words = (text) => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
const query = words(new URLSearchParams(window.location.search).get("q") ?? "");
const named = (title) => query.length > 0 && query.every((word) => words(title).includes(word));

var Scorer = {
  score: ([page, title, , , score]) => score + (RECORDS.test(page) ? -12 : GUIDES.test(page) ? 4 : 0) + (named(title) ? 4 : 0),
  // The rest is as Sphinx has it.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
