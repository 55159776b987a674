import type { HookClient, Hooks, PublishAnswer, Refusal } from '../../../doors/options/hooks.js'
import { isForwardable, type WebhookFailure } from '../../../doors/options/webhook.js'
import { isObject } from '../../../kernel/base/is-object.js'
import { measureJson } from '../../../kernel/base/json-excess.js'
import { JsonText, membersOf } from '../../../kernel/base/json-text.js'
import { clientNameOf } from '../../../kernel/identity/actor.js'
import { NonsenseError } from '../answers.js'
import type { CircuitBreaker } from './circuit-breaker.js'
import { type WebhookClient, WebhookError, type WebhookFault } from './client.js'
import { dataMember, eventJson, payloadMembers } from './event-json.js'

export interface QuestionsContext {
  readonly client: Pick<WebhookClient, 'post'>
  /** Of each event that is asked about. */
  readonly breakers: ReadonlyMap<string, CircuitBreaker>
  /** Headers of the upgrade request that are passed on, in lower case. */
  readonly headers: readonly string[]
  readonly failure: WebhookFailure
  /** A question got no answer, and counts as if the webhook had said nothing. */
  readonly onIgnored: (event: string, error: unknown) => void
}

/** The hooks that ask a webhook: those of its events. */
export function webhookHooks(context: QuestionsContext): Hooks {
  // Who has asked checks what it says, as that of any hook.
  const ask = (event: string, client: HookClient, body: string, headers?: Readonly<Record<string, string>>) =>
    askWebhook(context, context.breakers.get(event) as CircuitBreaker, event, client, body, headers) as Promise<
      Refusal | undefined
    >
  const hooks: Hooks = {
    connect: (request) => {
      const { claims, path, query, isRenewal } = request
      const body = eventJson({ event: 'connect', ...who(request), claims, path, query, isRenewal })
      return ask('connect', request, body, forwarded(request.headers, context.headers))
    },
    listen: (request) => {
      const { op, pattern, isReplay } = request
      return ask('listen', request, eventJson({ event: 'listen', ...who(request), op, pattern, isReplay }))
    },
    publish: (request) => {
      const { key, payload, isBinary, isEphemeral } = request
      const members = { event: 'publish', ...who(request), key, isEphemeral }
      return ask('publish', request, eventJson(members, payloadMembers(payload, isBinary))).then(withBytes)
    },
    presence: (request) => {
      const { op, key, dataText } = request
      const members = { event: 'presence', ...who(request), op, key }
      return ask('presence', request, eventJson(members, dataMember(dataText)))
    },
  }
  return Object.fromEntries(Object.entries(hooks).filter(([event]) => context.breakers.has(event)))
}

function who({ session, user, address }: HookClient): object {
  return { session, user, address }
}

/** Values that HTTP allows: a client chooses them, and must not make the request fail. */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

function forwarded(headers: Readonly<Record<string, string>>, names: readonly string[]): Record<string, string> {
  const found: Record<string, string> = {}
  for (const name of names) {
    const value = headers[name]
    if (value !== undefined && isForwardable(name) && HEADER_VALUE.test(value)) found[name] = value
  }
  return found
}

async function askWebhook(
  { client, failure, onIgnored }: QuestionsContext,
  breaker: CircuitBreaker,
  event: string,
  { user, address }: HookClient,
  body: string,
  headers?: Readonly<Record<string, string>>,
): Promise<object | undefined> {
  try {
    if (!breaker.mayAsk()) {
      const fault = faultOf(breaker.lastFailure)
      throw new WebhookError('it is not asked for now, because it failed several times', fault)
    }
    const asker = clientNameOf({ userId: user, address })
    const text = await outcomeOf(breaker, client.post(body, headers), asker)
    return parsed(text)
  } catch (error) {
    // Nobody connects unasked, and any answer counts: a client may have caused the failure.
    const isUnanswered = ['unreachable', 'silent'].includes(faultOf(error))
    if (failure === 'closed' || !isUnanswered || event === 'connect') throw error
    onIgnored(event, error)
    return undefined
  }
}

/** Tells the breaker. An answer that makes no sense, or refuses the request, is no outage: a client may have caused it. */
async function outcomeOf(breaker: CircuitBreaker, answer: Promise<string>, asker: string): Promise<string> {
  try {
    const text = await answer
    breaker.succeeded()
    return text
  } catch (error) {
    const fault = faultOf(error)
    if (fault === 'nonsense') breaker.succeeded()
    else breaker.failed(error, fault === 'unreachable' ? undefined : asker)
    throw error
  }
}

function faultOf(error: unknown): WebhookFault {
  return error instanceof WebhookError ? error.fault : 'nonsense'
}

function parsed(text: string): object | undefined {
  if (text === '') return undefined
  const { excess } = measureJson(Buffer.from(text))
  if (excess !== undefined) throw new NonsenseError(`the answer ${excess}`)
  let answer: unknown
  try {
    answer = JSON.parse(text)
  } catch (cause) {
    throw new NonsenseError('the answer is not JSON', { cause })
  }
  if (!isObject(answer)) throw new NonsenseError('the answer is not a JSON object')
  const texts = membersOf(text).filter(([name]) => PASSED_ON.has(name))
  return { ...answer, ...Object.fromEntries(texts.map(([name, json]) => [name, JsonText.inLine(json)])) }
}

/** Members that clients get: as the webhook has written them, so that numbers keep all their digits. */
const PASSED_ON = new Set(['payload', 'data'])

/** `base64` of an answer as the bytes that a hook of the process would give. */
function withBytes(answer: Refusal | undefined): Refusal | PublishAnswer | undefined {
  if (answer === undefined || !('base64' in answer)) return answer
  const { base64, ...others } = answer as Refusal & { readonly base64: unknown }
  if (typeof base64 !== 'string' || !/^[A-Za-z0-9+/]*={0,2}$/.test(base64) || 'payload' in others) {
    throw new NonsenseError('base64 is not base64, or stands beside payload')
  }
  return { ...others, payload: new Uint8Array(Buffer.from(base64, 'base64')) }
}
