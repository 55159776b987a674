import { constants, deflateRawSync } from 'node:zlib'
import { RunError, UsageError } from '../exit-codes.js'
import { orderMessage } from '../load/order-message.js'
import type { InboundFrame } from '../loadgen/events.js'
import type { TargetAbility, TargetSpec } from '../targets/target-table.js'
import { createTrialScenario } from '../trials/create-trial-scenario.js'
import { INBOUND_COLUMNS, INBOUND_NOTE, measureInbound } from '../trials/inbound.js'
import { checkOrderSize, names, type TrialConfig } from '../trials/trial-options.js'
import type { TrialScenario } from '../trials/trial-scenario.js'

/** Encodings of the same message, by `--format`. */
const FORMATS = ['json', 'msgpack', 'compressed'] as const
type Format = (typeof FORMATS)[number]

interface FormatsConfig extends TrialConfig {
  readonly formats: readonly Format[]
}

/** Abilities that a target needs for a format. */
const NEEDS: Readonly<Record<Format, TargetAbility | null>> = {
  json: null,
  msgpack: 'binary',
  compressed: 'compression',
}
/** RFC 7692 §7.2.1: the end of a flushed block, which stays off the wire. */
const FLUSHED_TAIL_BYTES = 4

const formats: TrialScenario<FormatsConfig> = {
  name: 'formats',
  summary: 'like throughput, with the same message as JSON, as MessagePack and compressed (permessage-deflate)',
  examples: [
    ['--tiers 100,1000', 'all formats'],
    ['--format json,msgpack --target webmq-native,uws', 'without compression'],
  ],
  abilities: ['inbound'],
  defaults: { targets: ['webmq-native', 'uws'], tiers: [100, 1_000, 5_000], duration: 10, warmup: 1, payload: 175 },
  caseColumns: [],
  columns: [{ key: 'messageBytes', title: 'Message', unit: 'B', format: 'count', better: 'lower' }, ...INBOUND_COLUMNS],
  addOptions(command) {
    command.option('--format <list>', `formats, one condition each: ${FORMATS.join(', ')}`, names, [...FORMATS])
  },
  readConfig(common, values) {
    checkOrderSize('--payload', common.payload)
    const chosen = (values.format as string[]).map((name) => {
      const format = FORMATS.find((known) => known === name)
      if (format === undefined) throw new UsageError(`there is no format '${name}'; there are ${FORMATS.join(', ')}`)
      return format
    })
    for (const { label, spec } of common.targets) {
      const format = chosen.find((one) => !isAble(spec, one))
      if (format !== undefined)
        throw new UsageError(`target '${label}' does not take ${format}: choose others with --format`)
    }
    return { ...common, formats: chosen }
  },
  cases: ({ tiers, formats: chosen }) =>
    chosen.flatMap((mode) => tiers.map((subscribers) => ({ mode, subscribers, fields: {} }))),
  notes: () => [
    INBOUND_NOTE,
    'Bandwidth is of the message as JSON, whatever it is sent as; "Message" is what is sent, without frame header.',
    'What is compressed is the same message over and over: real traffic compresses less well.',
  ],
  async measure(context) {
    const format = context.testCase.mode as Format
    const message = orderMessage(context.config.payload)
    const { frame, bytes } = await frameOf(format, message, context.choice.spec)
    const isCompressed = format === 'compressed'
    const figures = await measureInbound(context, { frame, payloadBytes: context.config.payload, isCompressed })
    return { figures: { ...figures, messageBytes: bytes } }
  },
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

/** WSE's test 5: the cost of a message in each format. */
export const formatsScenario = createTrialScenario(formats)
