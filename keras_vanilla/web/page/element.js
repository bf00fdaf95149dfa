/** The element of the page with an id. */
export function $(id) {
  return document.getElementById(id);
}
