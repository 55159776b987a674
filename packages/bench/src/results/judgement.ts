import type { RowVerdict } from './result.js'

export interface Judgement {
  readonly verdict: RowVerdict
  readonly verdictReason: string | null
}

/** The worst first. */
const BY_SEVERITY: readonly RowVerdict[] = [
  'failed',
  'lost messages',
  'publishes failed',
  'machine saturated',
  'generator saturated',
  'server saturated',
  'broker saturated',
  'ok',
]

/** The worst of several, which stands for all repeats. */
export function worstOf(judgements: readonly Judgement[]): Judgement {
  const rank = ({ verdict }: Judgement) => BY_SEVERITY.indexOf(verdict)
  const worst = judgements.toSorted((a, b) => rank(a) - rank(b))[0]
  return { verdict: worst?.verdict ?? 'ok', verdictReason: worst?.verdictReason ?? null }
}
