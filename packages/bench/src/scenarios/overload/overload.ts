import { RunError } from '../../exit-codes.js'
import { tableText } from '../../report/table-text.js'
import type { ResultCurve, ResultRow } from '../../results/result.js'
import { RunProgress } from '../../run-progress.js'
import type { ScenarioContext } from '../../scenario.js'
import {
  createRowScenario,
  NOT_MEASURED,
  noteLines,
  type Rows,
  requireMeasured,
  verdictLines,
} from '../../trials/row-scenario.js'
import { addOverloadOptions, type OverloadConfig, readOverloadConfig } from './options.js'
import { OVERLOAD_COLUMNS, OVERLOAD_IDENTITY, overloadCurve, overloadRow, overloadTarget } from './result.js'
import { observeOverload } from './run.js'

/** A broker of known capacity that is offered less and more than that, and breaks for a moment. */
export const overloadScenario = createRowScenario({
  name: 'overload',
  summary:
    'publishers offer half to three times what the broker can take, and it stands still: goodput, refusals, time',
  examples: [
    ['', 'Redis, six loads and three faults: about three minutes'],
    ['--broker rabbitmq,redis,nats --json overload.json --html overload.html', 'every broker'],
    ['--broker nats --faults none --svg nats.svg', 'the curve as a picture'],
    ['--root ../before --svg before.svg', 'the curve of another checkout that is built'],
    ['--loads 0.8,2 --faults freeze --settle 2 --window 3', 'a short look: forty seconds'],
    [
      "--assert 'goodput >= 95%' --assert 'refusedCount@load=0.8 = 0' --assert 'normalRatio@fault=freeze <= 1.3'",
      'in CI',
    ],
  ],
  columns: OVERLOAD_COLUMNS,
  identity: OVERLOAD_IDENTITY,
  addOptions: addOverloadOptions,
  readConfig: readOverloadConfig,
  targets: (config) => config.brokers.map((kind) => overloadTarget(kind, config)),
  describe: (config) => ({ ...config }),
  heading: (config) =>
    [
      `  Broker: ${config.brokers.join(', then ')}, behind a network that carries ${config.bytesPerSecond.toLocaleString('en')} bytes per second to it`,
      `  Nodes: ${config.backends} (transport ${config.transport}); ${config.clients} clients publish ${config.messageSize} bytes each`,
      `  Loads: ${config.loads.join(', ')} times the capacity; ${config.settleS} s, then ${config.windowS} s measured`,
      `  Faults at ${config.faultLoad} times the capacity: ${config.faults.join(', ') || 'none'}`,
    ].join('\n'),
  measure: measureOverload,
  text: ({ rows, notes }, width) =>
    [
      tableText(OVERLOAD_COLUMNS, OVERLOAD_IDENTITY, rows, width),
      ...verdictLines(rows, ({ target, fault, load }) => `${target}, ${load}x, ${fault}`),
      ...noteLines(notes),
    ].join('\n'),
})

async function measureOverload(config: OverloadConfig, { progress: output, signal }: ScenarioContext): Promise<Rows> {
  const progress = new RunProgress(output, config.brokers.length)
  const rows: ResultRow[] = []
  const curves: ResultCurve[] = []
  const notes: string[] = []
  try {
    for (const kind of config.brokers) {
      const target = overloadTarget(kind, config)
      progress.step(target)
      try {
        const observation = await observeOverload(kind, config, progress, signal)
        const { capacity, capacityUtilization, phases } = observation
        rows.push(...phases.map((phase) => overloadRow(target, config, capacity, phase)))
        curves.push(overloadCurve(target, observation))
        const busy = Math.round(capacityUtilization * 100)
        notes.push(
          `${target}: capacity ${Math.round(capacity)} publishes per second, the broker was busy for ${busy}%.`,
        )
      } catch (error) {
        // One failure must not discard the figures of the other brokers.
        if (!(error instanceof RunError) || signal.aborted || config.brokers.length === 1) throw error
        progress.note(`${kind} failed: ${error.message}`)
        const failed = { verdict: 'failed', verdictReason: error.message, repeatCount: 1, spread: {} } as const
        rows.push({ ...NOT_MEASURED, target, mode: 'overload', subscribers: config.clients, ...failed })
      }
    }
  } finally {
    progress.done()
  }
  requireMeasured(rows)
  return { rows, runs: rows, curves, notes }
}
