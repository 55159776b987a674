const HASH = '#'
/** RabbitMQ 4.3.5 and later refuse more of them in a binding. */
const MAX_HASHES = 2

/**
 * The binding for a pattern: the pattern itself, or a broader one where RabbitMQ does not take it. The node then drops
 * what nobody wants.
 */
export function bindingOf(pattern: string): string {
  const words = pattern.split('.')
  if (words.filter((word) => word === HASH).length <= MAX_HASHES) return pattern
  return words.slice(0, words.indexOf(HASH) + 1).join('.')
}
