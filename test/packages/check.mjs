import { print } from '../../scripts/lib/steps.mjs'

const DEFAULT_LIMIT_MS = 120_000

/** What a check needs and this machine has not: then it is skipped. */
export class Missing extends Error {}

/** Starts a service of webmq-services. @throws {Missing} when this machine cannot have it. */
export async function startedService(start) {
  try {
    return await start?.()
  } catch (error) {
    throw error.name === 'ServiceError' ? new Missing(error.message) : error
  }
}

/**
 * One named check. `limitMs`: then everything that it started ends, and it has failed.
 * @typedef {{ name: string, limitMs?: number, run: (context: object) => Promise<string | undefined> }} Check
 * @typedef {{ name: string, state: 'pass' | 'FAIL' | 'skip', note: string, seconds: number }} Result
 */

/**
 * Runs a check and prints a line.
 * @param {Check} check
 * @param {(signal: AbortSignal) => object} contextOf
 * @returns {Promise<Result>}
 */
export async function runCheck({ name, limitMs = DEFAULT_LIMIT_MS, run }, contextOf) {
  const startedAtMs = performance.now()
  const abort = new AbortController()
  const limit = setTimeout(() => abort.abort(new Error(`not done in ${limitMs / 1_000} s`)), limitMs)
  const late = new Promise((_, reject) => abort.signal.addEventListener('abort', () => reject(abort.signal.reason)))
  const result = { name, state: 'pass', note: '', seconds: 0 }
  try {
    result.note = (await Promise.race([run(contextOf(abort.signal)), late])) ?? ''
  } catch (error) {
    result.state = error instanceof Missing ? 'skip' : 'FAIL'
    result.note = error.message
  }
  clearTimeout(limit)
  // Whatever the check has left running ends now.
  late.catch(() => undefined)
  abort.abort(new Error('the check is over'))
  result.seconds = Math.round((performance.now() - startedAtMs) / 100) / 10
  print(`  ${result.state} ${name}${result.note === '' ? '' : `: ${result.note}`} (${result.seconds} s)`)
  return result
}
