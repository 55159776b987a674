/**
 * How often a fault suite breaks its broker: every kind of fault once when all tests run, `soakCount` faults in a soak, which
 * sets `WEBMQ_TEST_RUNS`.
 */
export function faultCount(soakCount: number): { readonly faultCount: number; readonly rounds?: number } {
  return process.env.WEBMQ_TEST_RUNS === undefined ? { faultCount: soakCount, rounds: 1 } : { faultCount: soakCount }
}
