import { orderMessage } from '../load/order-message.js'
import { createTrialScenario } from '../trials/create-trial-scenario.js'
import { INBOUND_COLUMNS, INBOUND_NOTE, measureInbound } from '../trials/inbound.js'
import { checkOrderSize, counts, type TrialConfig } from '../trials/trial-options.js'
import type { TrialScenario } from '../trials/trial-scenario.js'

interface MatrixConfig extends TrialConfig {
  /** Bytes. */
  readonly payloads: readonly number[]
}

const matrix: TrialScenario<MatrixConfig> = {
  name: 'matrix',
  summary: 'like throughput, for every payload size at every number of connections',
  examples: [
    ['--tiers 100,1000,5000', '64 B to 64 KB'],
    ['--payloads 64,1024 --tiers 100', 'two sizes'],
  ],
  abilities: ['inbound'],
  defaults: { targets: ['webmq-native', 'uws'], tiers: [100, 1_000, 5_000], repeat: 1, duration: 5, warmup: 0.5 },
  caseColumns: [{ key: 'payloadBytes', title: 'Payload', unit: 'B', format: 'bytes' }],
  columns: INBOUND_COLUMNS,
  addOptions(command) {
    command.option(
      '--payloads <bytes>',
      'payload sizes, one condition each',
      counts,
      [64, 256, 1_024, 4_096, 16_384, 65_536],
    )
  },
  readConfig(common, values) {
    const payloads = values.payloads as number[]
    for (const bytes of payloads) checkOrderSize('--payloads', bytes)
    return { ...common, payloads }
  },
  cases: ({ tiers, payloads }) =>
    payloads.flatMap((payloadBytes) =>
      tiers.map((subscribers) => ({ mode: 'flood', subscribers, fields: { payloadBytes } })),
    ),
  notes: () => [INBOUND_NOTE],
  async measure(context) {
    const payloadBytes = Number(context.testCase.fields.payloadBytes)
    const json = Buffer.from(JSON.stringify(orderMessage(payloadBytes)))
    const frame = { base64: Buffer.from(context.choice.spec.wire.inbound(json)).toString('base64'), binary: false }
    return { figures: await measureInbound(context, { frame, payloadBytes }) }
  },
}

/** WSE's test 4: payload sizes by connections. */
export const matrixScenario = createTrialScenario(matrix)
