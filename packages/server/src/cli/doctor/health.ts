import { inWords } from '../in-words.js'
import { codeOf } from './address.js'
import { type Finding, failure, ok, skipped, warning } from './finding.js'
import { ask, jsonOf } from './http.js'
import type { DoctorTarget } from './target.js'

/** The header has whole seconds, and the way takes time. */
const EXACT_S = 2
/** Tokens are refused far before this. */
const WRONG_S = 60

/** Asks `/health` and `/ready`, and compares clocks. */
export async function checkHealth(target: DoctorTarget): Promise<readonly Finding[]> {
  try {
    const health = await ask(target, '/health')
    const clock = checkClock(health.headers.date, health.atMs)
    if (jsonOf(health).server !== 'webmq') {
      return [skipped('health', `/health is answered by something else (${health.status})`), clock]
    }
    const ready = await ask(target, '/ready')
    const { status } = jsonOf(ready)
    if (ready.status === 200) return [ok('health', 'the server is ready'), clock]
    const advice = 'Look at /ready on the machine of the server, and at its log.'
    return [failure('health', `the server is not ready: ${String(status)}`, advice), clock]
  } catch (error) {
    return [skipped('health', `/health does not answer (${codeOf(error)})`)]
  }
}

function checkClock(date: string | undefined, atMs: number): Finding {
  const theirsMs = Date.parse(date ?? '')
  if (Number.isNaN(theirsMs)) return skipped('clock', 'the answer has no Date header')
  const skewS = (theirsMs + 500 - atMs) / 1000
  const differenceS = Math.abs(skewS)
  if (differenceS <= EXACT_S) return ok('clock', 'the clocks of server and this machine agree')
  const text = `the clock of the server is ${inWords(differenceS)} ${skewS > 0 ? 'ahead' : 'behind'}`
  const advice = 'Run NTP on both machines: tokens are valid at the time of the server.'
  return differenceS > WRONG_S ? failure('clock', text, advice) : warning('clock', text, advice)
}
