/** As in {@link OutboundMessage}. */
const ID_CHARS = 22

/** The message id with this name: different for different names of up to 21 characters of `[A-Za-z0-9-]`. */
export function messageIdOf(name: string): string {
  if (!/^[A-Za-z0-9-]{0,21}$/.test(name)) throw new RangeError(`no name of a message id: ${name}`)
  return name.padEnd(ID_CHARS, '_')
}
