// Package web is what a browser sees: page structs, the templates that show
// them, and the assets, all embedded. It does no I/O of its own and knows no
// store: whoever serves a page fills its struct from copies and renders it.
//
// Nothing in a page needs JavaScript except liveness. Nothing in a page is an
// inline script, an inline handler or a style attribute, so that a content
// security policy can refuse them all.
//
// # Live pages
//
// A page whose Chrome.Stream is set opens that path as an event stream. Each
// event is named after one of the page's Parts and carries what Fragment
// renders for it, which replaces the part. A server sends every part when a
// stream begins and from then on a part whose bytes have changed. Forms in a
// part are kept by the browser as they are, their idempotency keys included,
// for as long as the part still has them.
//
// A run's log is not a part, for it only grows. Its page shows what
// LogCollector.Steps gives of a log read from its beginning. Its stream reads
// the log from its beginning too and sends, as EventLog, Renderer.LogEvent of
// what each Take gives: first the last WindowLines of a step, then what is new.
// The browser drops the lines that it has, and asks for the page's log again
// when it finds that it has missed some.
package web
