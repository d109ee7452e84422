// The ranking of search results. `score` ranks pages of the Python reference lower, since they are so many that they would hide the
// guides: a name that matches exactly comes after titles and before mentions in other pages. The other values are Sphinx's defaults.
var Scorer = {
  score: ([page, _title, _anchor, _description, score]) => (page.startsWith("python/") ? score / 3 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
