import { addCounts, type Counts, noCounts } from 'webmq-check/systems'
import { tableText } from '../../report/table-text.js'
import { column, faults, percentileColumns, VERDICT_COLUMN } from '../../results/columns.js'
import type { Judgement } from '../../results/judgement.js'
import type { ResultColumn, ResultRow } from '../../results/result.js'
import { noteLines, type Rows, verdictLines } from '../../trials/row-scenario.js'
import { judge } from '../../trials/verdict.js'
import { FULL_RATIO } from '../clients/cores.js'
import { percentiles } from '../fleet/window-figures.js'
import type { AudienceLog } from './messages.js'

/** What clients missed, by the rules of the check of other systems. */
export const LOSS_COLUMNS: readonly ResultColumn[] = [
  column('publishedCount', 'Published', 'count'),
  column('expectedCount', 'Expected', 'count'),
  column('deliveredRatio', 'Delivered', 'percent', 'higher'),
  column('wholeRatio', 'Clients with all, once', 'percent', 'higher'),
  faults('gapCount', 'Lost, nothing said'),
  faults('toldLostCount', 'Lost, told'),
  faults('duplicateCount', 'Doubled'),
  faults('reorderedCount', 'Out of order'),
  column('recoveredCount', 'Recovered', 'count'),
  faults('toldGapCount', 'Gaps told'),
  faults('falseRecoveredCount', 'False recovered'),
]

export const AWAY_COLUMNS: readonly ResultColumn[] = [
  column('absenceCount', 'Absences', 'count'),
  ...percentileColumns('awayMs', 'away', ['p50', 'p99', 'max']),
  faults('missingCount', 'Never back'),
]

export const CLIENT_COLUMNS: readonly ResultColumn[] = [
  column('generatorCpuSeconds', 'Client CPU', 'seconds'),
  column('generatorUtilization', 'Clients busy', 'percent'),
  column('machineShare', 'Cores busy', 'percent'),
  VERDICT_COLUMN,
]

/** Of the clients of a run, and of others that are counted with them. */
export function lossFigures(publishedCount: number, log: AudienceLog, clients: number, more: Counts = noCounts()) {
  const counts = noCounts()
  for (const each of [log.counts, more]) addCounts(counts, each)
  const { expected, silentlyLost, toldLost, doubled, inverted, recovered, toldGaps, falselyRecovered } = counts
  return {
    publishedCount,
    expectedCount: expected,
    deliveredRatio: expected === 0 ? null : (expected - silentlyLost - toldLost) / expected,
    wholeRatio: log.wholeCount / clients,
    gapCount: silentlyLost,
    toldLostCount: toldLost,
    duplicateCount: doubled,
    reorderedCount: inverted,
    recoveredCount: recovered,
    toldGapCount: toldGaps,
    falseRecoveredCount: falselyRecovered,
    absenceCount: log.awayMs.length,
    awayMs: percentilesOf(log.awayMs),
    missingCount: log.missingCount,
    generatorCpuSeconds: log.cpuSeconds,
    examples: log.examples,
  }
}

/** As a row has them. */
export function percentilesOf(values: readonly number[]) {
  return { ...percentiles(values), p95: null }
}

/**
 * @param busy Shares of the busiest process's core and of all cores, 0 to 1.
 * @param failures What else went wrong, in words.
 */
export function judgeDrops(
  figures: ReturnType<typeof lossFigures>,
  busy: { readonly generatorUtilization: number; readonly machineShare: number },
  failures: readonly (string | false)[],
): Judgement {
  const { generatorUtilization, machineShare } = busy
  const { gapCount, toldLostCount, duplicateCount, reorderedCount, missingCount, falseRecoveredCount } = figures
  const told = [
    toldLostCount > 0 && `${toldLostCount.toLocaleString('en')} lost and told`,
    falseRecoveredCount > 0 && `${falseRecoveredCount.toLocaleString('en')} false recovered`,
    missingCount > 0 && `${missingCount.toLocaleString('en')} clients never came back`,
    ...failures,
  ].filter((failure) => failure !== false)
  const failure = told.length === 0 ? null : told.join(', ')
  const judged = judge({ lostCount: gapCount, duplicateCount, reorderedCount, failure, generatorUtilization })
  if (judged.verdict === 'lost messages' || machineShare <= FULL_RATIO) return judged
  return {
    verdict: 'machine saturated',
    verdictReason: `${Math.round(machineShare * 100)} % of all cores were busy: times are those of the machine`,
  }
}

export function dropsText(columns: readonly ResultColumn[], identity: readonly string[]) {
  return ({ rows, notes }: Rows, width: number | undefined): string =>
    [
      tableText(columns, identity, rows, width),
      ...verdictLines(rows, nameOf),
      ...rows.flatMap(examplesOf),
      ...noteLines(notes),
    ].join('\n')
}

function nameOf({ target, mode }: ResultRow): string {
  return `${target}, ${mode}`
}

function examplesOf({ examples }: ResultRow): string[] {
  return Array.isArray(examples) ? examples.map((example) => `    ${String(example)}`) : []
}
