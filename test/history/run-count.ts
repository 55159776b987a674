/** Of the usual count, how much every run of all tests makes; `npm run test:soak` makes the rest. */
const SHARE_OF_TESTS = 0.25
/** With fewer, what is rare may happen in none of them. */
const LEAST_RUNS = 6

/**
 * How often something random is tried: a few times when every test is run, and as often as somebody asks with
 * `WEBMQ_TEST_RUNS=1000`.
 * @param usual What a soak makes at least.
 * @param share Of what is asked for, when a single run takes long.
 * @param least With fewer, the check of all runs together could fail by chance.
 */
export function runCount(usual: number, share = 1, least = LEAST_RUNS): number {
  const asked = process.env.WEBMQ_TEST_RUNS
  if (asked === undefined) return Math.min(usual, Math.max(least, Math.ceil(usual * SHARE_OF_TESTS)))
  const count = Number(asked)
  if (!Number.isInteger(count) || count < 1) throw new Error(`WEBMQ_TEST_RUNS must be a whole number, not ${asked}`)
  return Math.max(usual, Math.round(count * share))
}
