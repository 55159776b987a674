import { constants, deflateRawSync } from 'node:zlib'
import { RunError, UsageError } from '../exit-codes.js'
import { orderMessage } from '../load/order-message.js'
import type { InboundFrame } from '../loadgen/events.js'
import { column } from '../results/columns.js'
import type { TargetAbility, TargetSpec } from '../targets/target-table.js'
import { createTrialScenario } from '../trials/create-trial-scenario.js'
import { INBOUND_COLUMNS, INBOUND_NOTE, measureInbound } from '../trials/inbound.js'
import { checkOrderSize, counts, names, type TrialConfig } from '../trials/trial-options.js'
import type { TrialContext } from '../trials/trial-scenario.js'

/** Encodings of the same message, by `--format`. */
const FORMATS = ['json', 'msgpack', 'compressed'] as const
type Format = (typeof FORMATS)[number]

/** Abilities that a target needs for a format. */
const NEEDS: Readonly<Record<Format, TargetAbility | null>> = {
  json: null,
  msgpack: 'binary',
  compressed: 'compression',
}
/** RFC 7692 §7.2.1: the end of a flushed block, which stays off the wire. */
const FLUSHED_TAIL_BYTES = 4
/** Bytes of JSON, as in the published tests. */
const ORDER_BYTES = 175

/** WSE's test 3: how many messages of clients a server processes, and the cost of one. */
export const throughputScenario = createTrialScenario<TrialConfig>({
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
    payload: ORDER_BYTES,
  },
  caseColumns: [],
  columns: INBOUND_COLUMNS,
  readConfig(common) {
    checkOrderSize('--payload', common.payload)
    return common
  },
  cases: ({ tiers }) => tiers.map((subscribers) => ({ mode: 'flood', subscribers, fields: {} })),
  notes: () => [INBOUND_NOTE],
  measure: async (context) => await measureFormat(context, 'json', context.config.payload),
})

/** WSE's test 4: payload sizes by connections. */
export const matrixScenario = createTrialScenario<TrialConfig & { readonly payloads: readonly number[] }>({
  name: 'matrix',
  summary: 'like throughput, for every payload size at every number of connections',
  examples: [
    ['--tiers 100,1000,5000', '64 B to 64 KB'],
    ['--payloads 64,1024 --tiers 100', 'two sizes'],
  ],
  abilities: ['inbound'],
  defaults: { targets: ['webmq-native', 'uws'], tiers: [100, 1_000, 5_000], repeat: 1, duration: 5, warmup: 0.5 },
  caseColumns: [column('payloadBytes', 'Payload', 'bytes')],
  columns: INBOUND_COLUMNS,
  addOptions(command) {
    const sizes = [64, 256, 1_024, 4_096, 16_384, 65_536]
    command.option('--payloads <bytes>', 'payload sizes, one condition each', counts, sizes)
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
  measure: async (context) => await measureFormat(context, 'json', Number(context.testCase.fields.payloadBytes)),
})

/** WSE's test 5: the cost of a message in each format. */
export const formatsScenario = createTrialScenario<TrialConfig & { readonly formats: readonly Format[] }>({
  name: 'formats',
  summary: 'like throughput, with the same message as JSON, as MessagePack and compressed (permessage-deflate)',
  examples: [
    ['--tiers 100,1000', 'all formats'],
    ['--format json,msgpack --target webmq-native,uws', 'without compression'],
  ],
  abilities: ['inbound'],
  defaults: {
    targets: ['webmq-native', 'uws'],
    tiers: [100, 1_000, 5_000],
    duration: 10,
    warmup: 1,
    payload: ORDER_BYTES,
  },
  caseColumns: [],
  columns: [{ ...column('messageBytes', 'Message', 'count', 'lower'), unit: 'B' }, ...INBOUND_COLUMNS],
  addOptions(command) {
    command.option('--format <list>', `formats, one condition each: ${FORMATS.join(', ')}`, names, [...FORMATS])
  },
  readConfig(common, values) {
    checkOrderSize('--payload', common.payload)
    const formats = (values.format as string[]).map((name) => {
      const format = FORMATS.find((known) => known === name)
      if (format === undefined) throw new UsageError(`there is no format '${name}'; there are ${FORMATS.join(', ')}`)
      return format
    })
    for (const { label, spec } of common.targets) {
      const format = formats.find((one) => !isAble(spec, one))
      if (format !== undefined)
        throw new UsageError(`target '${label}' does not take ${format}: choose others with --format`)
    }
    return { ...common, formats }
  },
  cases: ({ tiers, formats }) =>
    formats.flatMap((mode) => tiers.map((subscribers) => ({ mode, subscribers, fields: {} }))),
  notes: () => [
    INBOUND_NOTE,
    'Bandwidth is of the message as JSON, whatever it is sent as; "Message" is what is sent, without frame header.',
    'What is compressed is the same message over and over: real traffic compresses less well.',
  ],
  measure: async (context) => await measureFormat(context, context.testCase.mode as Format, context.config.payload),
})

async function measureFormat(context: TrialContext, format: Format, payloadBytes: number) {
  const { frame, bytes } = await frameOf(format, orderMessage(payloadBytes), context.choice.spec)
  const figures = await measureInbound(context, { frame, payloadBytes, isCompressed: format === 'compressed' })
  return { figures: { ...figures, messageBytes: bytes } }
}

async function frameOf(
  format: Format,
  message: object,
  { wire }: TargetSpec,
): Promise<{ frame: InboundFrame; bytes: number }> {
  if (format === 'msgpack') {
    const bytes = Buffer.from(wire.inbound(await packed(message)))
    return { frame: { base64: bytes.toString('base64'), binary: true }, bytes: bytes.length }
  }
  const text = Buffer.from(wire.inbound(Buffer.from(JSON.stringify(message))))
  if (format === 'json') return { frame: { base64: text.toString('base64'), binary: false }, bytes: text.length }
  const flushed = deflateRawSync(text, { finishFlush: constants.Z_SYNC_FLUSH })
  const bytes = flushed.subarray(0, flushed.length - FLUSHED_TAIL_BYTES)
  return { frame: { base64: bytes.toString('base64'), binary: false, compressed: true }, bytes: bytes.length }
}

/** msgpackr is a development dependency. */
async function packed(message: object): Promise<Uint8Array> {
  const { pack } = await import('msgpackr').catch((cause: unknown) => {
    throw new RunError('--format msgpack needs the development dependencies of webmq-bench', { cause })
  })
  return pack(message)
}

function isAble(spec: TargetSpec, format: Format): boolean {
  const need = NEEDS[format]
  return need === null || spec.abilities.includes(need)
}
