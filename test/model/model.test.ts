import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { quintTest } from './quint.js'

const MODEL = fileURLToPath(new URL('positions.qnt', import.meta.url))
/** Traces of 40 steps, for each of two kinds of brokers. */
const TRACE_COUNT = 25
const SOAK_TRACE_COUNT = 20_000

const isSoak = process.env.WEBMQ_TEST_RUNS !== undefined
const seed = Number(process.env.WEBMQ_TEST_SEED ?? (isSoak ? 1 + Math.floor(Math.random() * 100_000) : 1))
const sampleCount = isSoak ? SOAK_TRACE_COUNT : TRACE_COUNT
const SOAK_TIMEOUT_MS = 1_200_000

it('keeps its promises in random traces, and in those that a server without one of its parts fails in', {
  timeout: SOAK_TIMEOUT_MS,
}, async () => {
  console.log(`model of positions: ${sampleCount} traces, seed ${seed}`)
  const { passed, failed } = await quintTest(MODEL, { match: '^(search|keeps|mutant|exception)', sampleCount, seed })
  const failures = [
    'mutantWithoutFingerprint',
    'mutantTrustsFirstPage',
    'mutantWithEpochOnly',
    'mutantTrustsUnknown',
    'mutantForgetsPredecessor',
    'mutantComparesNoEnd',
    'mutantReadsWhileCopying',
    'exceptionUntoldRestart',
    'exceptionVoucherLags',
  ]
  expect(failed).toEqual(failures)
  expect(passed).toHaveLength(9)
})
