import { option, withPayload } from './encode-field.js'
import { parseCount } from './fields.js'
import type { ClientMessage, ClientVerb, ServerMessage, ServerVerb } from './messages.js'
import { decodeObject, malformed, type RawMessage } from './raw-message.js'

// Queue groups and requests [P-16], apart from the other messages: clients that do not use them do not carry them.

type Client<V extends ClientVerb> = Extract<ClientMessage, { verb: V }>
type Server<V extends ServerVerb> = Extract<ServerMessage, { verb: V }>
type Frame = string | Uint8Array<ArrayBuffer>

/** What names a queue group: the options of `listen` and `unlisten`. */
export function membership({ group, respond }: Pick<Client<'listen'>, 'group' | 'respond'>): string {
  return option('group', group) + (respond ? ' respond' : '')
}

/** A `request` [P-16.6]. Its key MUST be valid. */
export function encodeRequest({ id, key, withinMs, payload }: Omit<Client<'request'>, 'verb'>): Frame {
  return withPayload(`request ${id} ${key}${option('within', withinMs)}\n`, payload)
}

/** A `reply` of a responder [P-16.8]. */
export function encodeReply({ id, isError, payload }: Omit<Client<'reply'>, 'verb'>): Frame {
  return withPayload(`reply ${id}${isError ? ' error' : ''}\n`, payload)
}

/** @throws {WebMQError} `E_MESSAGE_INVALID`. */
export function decodeTask({ fields, body }: RawMessage): Server<'task'> {
  const [group, pattern, key, ...options] = fields
  if (!group || !pattern || !key || body === undefined) throw malformed('task')
  const request = optionOf(options, 'request')
  const withinMs = parseCount(optionOf(options, 'within') ?? '')
  return {
    verb: 'task',
    group,
    pattern,
    key,
    ...(request && { request }),
    ...(withinMs !== undefined && { withinMs }),
    payload: body,
  }
}

/** @throws {WebMQError} `E_MESSAGE_INVALID`. */
export function decodeReply({ fields: [id, ...options], body }: RawMessage): Server<'reply'> {
  if (!id || body === undefined) throw malformed('reply')
  return { verb: 'reply', id, isError: options.includes('error'), payload: body }
}

/** @throws {WebMQError} `E_MESSAGE_INVALID`. */
export function decodeEnded({ fields: [group, pattern, ...options], body }: RawMessage): Server<'ended'> {
  const { code, message } = decodeObject('ended', body)
  if (!group || !pattern || typeof code !== 'string' || typeof message !== 'string') throw malformed('ended')
  return { verb: 'ended', group, pattern, ...(options.includes('respond') && { respond: true }), code, message }
}

/** The header line of a `task`, including its newline. Its fields must be valid. */
export function taskHeader(task: Omit<Server<'task'>, 'verb' | 'payload'>): string {
  const { group, pattern, key, request, withinMs } = task
  return `task ${group} ${pattern} ${key}${option('request', request)}${option('within', withinMs)}\n`
}

/** The header line of a `reply` of the server, including its newline. */
export function replyHeader({ id, isError }: Omit<Server<'reply'>, 'verb' | 'payload'>): string {
  return `reply ${id}${isError ? ' error' : ''}\n`
}

export function encodeEnded({ group, pattern, respond, code, message }: Omit<Server<'ended'>, 'verb'>): string {
  return `ended ${group} ${pattern}${respond ? ' respond' : ''}\n${JSON.stringify({ code, message })}`
}

function optionOf(options: readonly string[], name: string): string | undefined {
  return options.find((each) => each.startsWith(`${name}=`))?.slice(name.length + 1)
}
