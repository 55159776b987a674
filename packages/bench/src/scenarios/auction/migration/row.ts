import { mergeHistograms, summarizeLatency } from '../../../measure/latency-histogram.js'
import type { ResultRow } from '../../../results/result.js'
import { NOT_MEASURED } from '../../../trials/row-scenario.js'
import { per } from '../../../trials/trial-scenario.js'
import { judge } from '../../../trials/verdict.js'
import type { AuctionConfig } from '../options.js'
import type { AuctionCase } from '../processes.js'
import { auctionIdentity, clockFigures, costs, failureOf } from '../result.js'
import type { WatcherResult } from './messages.js'
import type { MigrationObservation } from './observe.js'

/** The figures of a run in which a node was drained. */
export function migrationRow(
  config: AuctionConfig,
  testCase: AuctionCase,
  observation: MigrationObservation,
): ResultRow {
  const { results, marks, expectedCount, reconciliation, offsets, answers } = observation
  const sum = (of: (result: WatcherResult) => number) => results.reduce((total, result) => total + of(result), 0)
  const deliveredCount = sum((result) => result.deliveredCount)
  const duplicateCount = sum((result) => result.duplicateCount)
  const reorderedCount = sum((result) => result.reorderedCount)
  const gapCount = sum((result) => result.gapCount)
  const errorCount = sum((result) => result.errorCount)
  const movedCount = sum((result) => result.movedCount)
  const bidCount = config.bids * config.items
  const seconds = (marks.end.atUs - marks.start.atUs) / 1_000_000
  // The clients are threads of the process that bids.
  const generatorCpuSeconds = marks.end.bidderCpuSeconds - marks.start.bidderCpuSeconds
  const generatorUtilization = Math.max(...results.map(({ utilization }) => utilization))
  const failures = [
    failureOf(reconciliation, {}),
    gapCount > 0 ? `${gapCount} gaps told` : null,
    errorCount > 0 ? `${errorCount} errors of clients` : null,
    movedCount === 0 ? 'no client has moved' : null,
  ].filter((failure) => failure !== null)
  return {
    ...NOT_MEASURED,
    ...auctionIdentity(config, testCase),
    publishedPerSecond: per(bidCount, seconds),
    deliveriesPerSecond: per(deliveredCount, seconds),
    latencyMs: summarizeLatency(mergeHistograms(results.map(({ latency }) => latency))),
    deliveryRate: deliveredCount / expectedCount,
    gapCount: expectedCount - deliveredCount,
    duplicateCount,
    reorderedCount,
    missingCount: reconciliation.missingCount,
    reconciliation,
    toldGapCount: gapCount,
    connectMs: observation.connectMs,
    connectsPerSecond: observation.connectsPerSecond,
    answerMs: answers,
    movedCount,
    liveAgainMs: summarizeLatency(mergeHistograms(results.map(({ liveAgain }) => liveAgain))),
    ...costs(marks.start, marks.end, { deliveredCount, bidCount, generatorCpuSeconds, bidderCpuSeconds: 0 }),
    generatorUtilization,
    ...clockFigures(offsets),
    crowd: observation.crowd,
    ...judge({
      lostCount: expectedCount - deliveredCount,
      duplicateCount,
      reorderedCount,
      failure: failures.length === 0 ? null : failures.join(', '),
      generatorUtilization,
    }),
    repeatCount: 1,
    spread: {},
  }
}
