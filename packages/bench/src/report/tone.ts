import { isDoubtful, type RowVerdict } from '../results/result.js'
import type { Tone } from './page.js'

export function toneOf(verdict: RowVerdict): Tone {
  if (verdict === 'ok') return 'good'
  return isDoubtful(verdict) ? 'doubtful' : 'bad'
}
