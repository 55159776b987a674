import { styleText } from 'node:util'
import type { ProgressOutput } from '../progress.js'
import { isDoubtful, type RowVerdict } from '../results/result.js'

type Style = 'bold' | 'green' | 'yellow' | 'red' | 'dim'

const VERDICT =
  /\b(?:machine saturated|generator saturated|server saturated|broker saturated|lost messages|publishes failed)\b/g
const OK = /(?<=^Verdict: |[ )])ok(?= |$)/gm
const TITLE = /^[A-Z][^:\n]*:$/gm

/** Colours the text of a result: titles, verdicts and assertions. The text itself stays as it is. */
export function painted(text: string, { isTTY }: ProgressOutput, env: NodeJS.ProcessEnv): string {
  if (isTTY !== true || (env.NO_COLOR ?? '') !== '' || env.TERM === 'dumb') return text
  const paint = (style: Style) => (part: string) => styleText(style, part, { validateStream: false })
  return text
    .replaceAll(TITLE, paint('bold'))
    .replaceAll(/^(?:Benchmark: .*|Results)$/gm, paint('bold'))
    .replaceAll(/^━+$/gm, paint('dim'))
    .replaceAll(VERDICT, (part) => paint(isDoubtful(part as RowVerdict) ? 'yellow' : 'red')(part))
    .replaceAll(OK, paint('green'))
    .replaceAll(/^ {2}holds(?=: )/gm, paint('green'))
    .replaceAll(/^ {2}FAILS(?=: )/gm, paint('red'))
}
