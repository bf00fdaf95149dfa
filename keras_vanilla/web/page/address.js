/** What stands behind `#` in the address: it is not sent to any server. */

/**
 * The value of a name behind `#`, or null.
 *
 * A plus is a plus: it is the text of a person, not a form.
 */
export function inAddress(name) {
  const values = location.hash.slice(1).split('&');
  const found = values.find((value) => value.startsWith(`${name}=`));
  if (found === undefined) return null;
  const value = found.slice(name.length + 1);
  try {
    return decodeURIComponent(value);
  } catch {
    return value; // as in #text=100%
  }
}

/** `#` and names with their values, those that are not null. */
export function addressOf(values) {
  const given = Object.entries(values).filter(([, value]) => value !== null);
  const parts = given.map(([name, value]) => {
    return `${name}=${encodeURIComponent(String(value).toWellFormed())}`;
  });
  return `#${parts.join('&')}`;
}
