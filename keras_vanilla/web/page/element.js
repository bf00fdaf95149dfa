/** The element of the page with an id. */
export function $(id) {
  return document.getElementById(id);
}

/**
 * A new element.
 *
 * @param {string} tag
 * @param {Object} [properties] Of the element; `style` and `dataset` are objects too.
 * @param {...(Node|string)} children
 */
export function make(tag, { style = {}, dataset = {}, ...properties } = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  for (const [name, value] of Object.entries(style)) element.style.setProperty(name, value);
  Object.assign(element.dataset, dataset);
  element.append(...children);
  return element;
}
