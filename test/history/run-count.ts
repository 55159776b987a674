/**
 * How often something random is tried: a few times when every test is run, and many when somebody asks, with
 * `WEBMQ_TEST_RUNS=1000`.
 * @param share Of what is asked for, when a single run takes long; never less than `usual`.
 */
export function runCount(usual: number, share = 1): number {
  const asked = process.env.WEBMQ_TEST_RUNS
  if (asked === undefined) return usual
  const count = Number(asked)
  if (!Number.isInteger(count) || count < 1) throw new Error(`WEBMQ_TEST_RUNS must be a whole number, not ${asked}`)
  return Math.max(usual, Math.round(count * share))
}
