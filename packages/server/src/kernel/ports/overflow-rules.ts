import { contains, isPattern, type ListenOverflow } from 'webmq-client/protocol'

/** What a lagging listener gets by default, for all listens whose keys a pattern matches. */
interface OverflowRule {
  readonly pattern: string
  readonly overflow: ListenOverflow
}

/** Values that a rule may have; a listen may ask for more, see [P-6.12]. */
const RULED: readonly ListenOverflow[] = ['disconnect', 'drop-oldest', 'latest']

/** How a rule is written, for errors and documentation. */
export const OVERFLOW_RULE_FORM = '`<pattern>=disconnect`, `<pattern>=drop-oldest` or `<pattern>=latest`'

/** Reads `prices.#=latest`; `undefined` if it is not a rule. */
export function parseOverflowRule(text: string): OverflowRule | undefined {
  const at = text.lastIndexOf('=')
  const pattern = text.slice(0, at)
  const overflow = RULED.find((known) => known === text.slice(at + 1))
  if (at < 0 || overflow === undefined || !isPattern(pattern)) return undefined
  return { pattern, overflow }
}

/** What a listen gets when its reader lags, if it does not ask for something else. */
export class OverflowRules {
  readonly #rules: readonly OverflowRule[]

  /** @param texts Texts that {@link parseOverflowRule} can read; the first that fits wins. */
  constructor(texts: readonly string[]) {
    this.#rules = texts.map(parseOverflowRule).filter((rule) => rule !== undefined)
  }

  /** A rule is for the listens whose keys all match the pattern of the rule. Cost: O(rules). */
  of(pattern: string): ListenOverflow {
    return this.#rules.find((rule) => contains(rule.pattern, pattern))?.overflow ?? 'disconnect'
  }
}
