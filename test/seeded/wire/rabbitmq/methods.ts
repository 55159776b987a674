import { FieldReader, type FieldType, type FieldValues, FieldWriter } from './fields.js'

interface MethodSpec {
  /** Class and method. */
  readonly id: readonly [number, number]
  readonly fields: Readonly<Record<string, FieldType>>
}

/** The methods that the model reads or writes (AMQP 0-9-1, 1.3 to 1.8, and RabbitMQ's own). */
const METHODS = {
  'connection.start': {
    id: [10, 10],
    fields: { major: 'octet', minor: 'octet', properties: 'table', mechanisms: 'longstr', locales: 'longstr' },
  },
  'connection.start-ok': {
    id: [10, 11],
    fields: { properties: 'table', mechanism: 'shortstr', response: 'longstr', locale: 'shortstr' },
  },
  'connection.tune': { id: [10, 30], fields: { channelMax: 'short', frameMax: 'long', heartbeat: 'short' } },
  'connection.tune-ok': { id: [10, 31], fields: { channelMax: 'short', frameMax: 'long', heartbeat: 'short' } },
  'connection.open': { id: [10, 40], fields: { vhost: 'shortstr', capabilities: 'shortstr', insist: 'bit' } },
  'connection.open-ok': { id: [10, 41], fields: { hosts: 'shortstr' } },
  'connection.close': {
    id: [10, 50],
    fields: { code: 'short', text: 'shortstr', classId: 'short', methodId: 'short' },
  },
  'connection.close-ok': { id: [10, 51], fields: {} },
  'connection.blocked': { id: [10, 60], fields: { reason: 'shortstr' } },
  'connection.unblocked': { id: [10, 61], fields: {} },
  'channel.open': { id: [20, 10], fields: { outOfBand: 'shortstr' } },
  'channel.open-ok': { id: [20, 11], fields: { id: 'longstr' } },
  'channel.close': { id: [20, 40], fields: { code: 'short', text: 'shortstr', classId: 'short', methodId: 'short' } },
  'channel.close-ok': { id: [20, 41], fields: {} },
  'exchange.declare': {
    id: [40, 10],
    fields: {
      ticket: 'short',
      exchange: 'shortstr',
      type: 'shortstr',
      isPassive: 'bit',
      isDurable: 'bit',
      isAutoDelete: 'bit',
      isInternal: 'bit',
      isNoWait: 'bit',
      args: 'table',
    },
  },
  'exchange.declare-ok': { id: [40, 11], fields: {} },
  'exchange.delete': {
    id: [40, 20],
    fields: { ticket: 'short', exchange: 'shortstr', ifUnused: 'bit', isNoWait: 'bit' },
  },
  'exchange.delete-ok': { id: [40, 21], fields: {} },
  'queue.declare': {
    id: [50, 10],
    fields: {
      ticket: 'short',
      queue: 'shortstr',
      isPassive: 'bit',
      isDurable: 'bit',
      isExclusive: 'bit',
      isAutoDelete: 'bit',
      isNoWait: 'bit',
      args: 'table',
    },
  },
  'queue.declare-ok': { id: [50, 11], fields: { queue: 'shortstr', messageCount: 'long', consumerCount: 'long' } },
  'queue.bind': {
    id: [50, 20],
    fields: {
      ticket: 'short',
      queue: 'shortstr',
      exchange: 'shortstr',
      key: 'shortstr',
      isNoWait: 'bit',
      args: 'table',
    },
  },
  'queue.bind-ok': { id: [50, 21], fields: {} },
  'queue.unbind': {
    id: [50, 50],
    fields: { ticket: 'short', queue: 'shortstr', exchange: 'shortstr', key: 'shortstr', args: 'table' },
  },
  'queue.unbind-ok': { id: [50, 51], fields: {} },
  'queue.delete': {
    id: [50, 40],
    fields: { ticket: 'short', queue: 'shortstr', ifUnused: 'bit', ifEmpty: 'bit', isNoWait: 'bit' },
  },
  'queue.delete-ok': { id: [50, 41], fields: { messageCount: 'long' } },
  'basic.qos': { id: [60, 10], fields: { size: 'long', count: 'short', isGlobal: 'bit' } },
  'basic.qos-ok': { id: [60, 11], fields: {} },
  'basic.consume': {
    id: [60, 20],
    fields: {
      ticket: 'short',
      queue: 'shortstr',
      tag: 'shortstr',
      noLocal: 'bit',
      noAck: 'bit',
      isExclusive: 'bit',
      isNoWait: 'bit',
      args: 'table',
    },
  },
  'basic.consume-ok': { id: [60, 21], fields: { tag: 'shortstr' } },
  'basic.cancel': { id: [60, 30], fields: { tag: 'shortstr', isNoWait: 'bit' } },
  'basic.cancel-ok': { id: [60, 31], fields: { tag: 'shortstr' } },
  'basic.publish': {
    id: [60, 40],
    fields: { ticket: 'short', exchange: 'shortstr', key: 'shortstr', isMandatory: 'bit', isImmediate: 'bit' },
  },
  'basic.return': { id: [60, 50], fields: { code: 'short', text: 'shortstr', exchange: 'shortstr', key: 'shortstr' } },
  'basic.deliver': {
    id: [60, 60],
    fields: {
      consumerTag: 'shortstr',
      deliveryTag: 'longlong',
      isRedelivered: 'bit',
      exchange: 'shortstr',
      key: 'shortstr',
    },
  },
  'basic.ack': { id: [60, 80], fields: { tag: 'longlong', isMultiple: 'bit' } },
  'basic.nack': { id: [60, 120], fields: { tag: 'longlong', isMultiple: 'bit', isRequeued: 'bit' } },
  'confirm.select': { id: [85, 10], fields: { isNoWait: 'bit' } },
  'confirm.select-ok': { id: [85, 11], fields: {} },
} as const satisfies Readonly<Record<string, MethodSpec>>

export type MethodName = keyof typeof METHODS
export type FieldsOf<N extends MethodName> = {
  readonly [F in keyof (typeof METHODS)[N]['fields']]: (typeof METHODS)[N]['fields'][F] extends FieldType
    ? FieldValues[(typeof METHODS)[N]['fields'][F]]
    : never
}
/** A method as it came, by its name. */
export type Method = { readonly [N in MethodName]: { readonly name: N } & FieldsOf<N> }[MethodName]
export type MethodOf<N extends MethodName> = Extract<Method, { readonly name: N }>

const NAMES = new Map(Object.entries(METHODS).map(([name, { id }]) => [id[0] * 65_536 + id[1], name as MethodName]))

/** Of a method, for what closes a channel. */
export function idOf(name: MethodName): { readonly classId: number; readonly methodId: number } {
  const [classId, methodId] = METHODS[name].id
  return { classId, methodId }
}

/** @returns the numbers of a method that the model does not know. */
export function decodeMethod(payload: Buffer): Method | { readonly name: 'unknown'; readonly id: string } {
  const name = NAMES.get(payload.readUInt32BE(0))
  if (name === undefined) return { name: 'unknown', id: `${payload.readUInt16BE(0)}.${payload.readUInt16BE(2)}` }
  const reader = new FieldReader(payload.subarray(4))
  const { fields } = METHODS[name] as MethodSpec
  const values = Object.entries(fields).map(([field, type]) => [field, reader.read(type)])
  return { name, ...Object.fromEntries(values) } as Method
}

export function encodeMethod<N extends MethodName>(name: N, values: FieldsOf<N>): Buffer {
  const { id, fields } = METHODS[name] as MethodSpec
  const writer = new FieldWriter()
  writer.write('short', id[0])
  writer.write('short', id[1])
  for (const [field, type] of Object.entries(fields)) {
    writer.write(type, values[field as keyof FieldsOf<N>] as FieldValues[FieldType])
  }
  return writer.bytes()
}
