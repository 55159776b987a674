import { orderMessage } from '../load/order-message.js'
import { createTrialScenario } from '../trials/create-trial-scenario.js'
import { INBOUND_COLUMNS, INBOUND_NOTE, measureInbound } from '../trials/inbound.js'
import { checkOrderSize, type TrialConfig } from '../trials/trial-options.js'
import type { TrialScenario } from '../trials/trial-scenario.js'

const throughput: TrialScenario<TrialConfig> = {
  name: 'throughput',
  summary: 'every connection publishes JSON at full speed, to a key without listeners',
  examples: [
    ['--tiers 100,1000,5000', '175 bytes each'],
    ["--assert 'webmq-native receivedPerServerCpuSecond@100 >= 1300000' --assert gapCount=0", 'in CI'],
  ],
  abilities: ['inbound'],
  defaults: {
    targets: ['webmq-native', 'uws', 'ws'],
    tiers: [100, 500, 1_000, 2_000, 5_000],
    duration: 10,
    warmup: 1,
    payload: 175,
  },
  caseColumns: [],
  columns: INBOUND_COLUMNS,
  readConfig(common) {
    checkOrderSize('--payload', common.payload)
    return common
  },
  cases: ({ tiers }) => tiers.map((subscribers) => ({ mode: 'flood', subscribers, fields: {} })),
  notes: () => [INBOUND_NOTE],
  async measure(context) {
    const { payload } = context.config
    const json = Buffer.from(JSON.stringify(orderMessage(payload)))
    const frame = { base64: Buffer.from(context.choice.spec.wire.inbound(json)).toString('base64'), binary: false }
    return { figures: await measureInbound(context, { frame, payloadBytes: payload }) }
  },
}

/** WSE's test 3: how many messages of clients a server processes, and the cost of one. */
export const throughputScenario = createTrialScenario(throughput)
