import { validateKey, WebMQError } from 'webmq-client/protocol'
import type { JsonText } from '../../../../kernel/base/json-text.js'
import { andThen } from '../../../../kernel/base/maybe-promise.js'
import type { ValueOf } from '../../../../kernel/base/shape.js'
import type { BatchDraft } from '../../../../kernel/publishing/draft.js'
import { resultOf } from '../../../../kernel/publishing/publish-options.js'
import type { MESSAGE } from '../shapes.js'
import type { Handler } from './handler.js'

/** Publishes one message: JSON, or the bytes of the body. */
export const publish: Handler<'publish'> = ({ node }, { caller, query, body, idempotencyKey, traceparent }) => {
  const given: BatchDraft = Buffer.isBuffer(body)
    ? { key: keyOf(query.key), payload: body, isBinary: true, messageId: idempotencyKey, trace: traceparent }
    : draftOf(body, traceparent, idempotencyKey, query.key)
  const draft = query.ephemeral === true ? { ...given, ephemeral: true } : given
  return andThen(node.publisher.publish(node.authorOf(caller), draft, draft.isBinary), resultOf)
}

/** Publishes messages in order. One refusal is that of all. */
export const publishBatch: Handler<'publishBatch'> = ({ node }, { caller, body, traceparent, spend }) => {
  const { messages } = body
  spend(messages.length)
  const drafts: BatchDraft[] = []
  // Made when the publisher comes to it, so that an error names the message; kept, because hooks may take their time.
  const draftAt = (index: number) => {
    drafts[index] ??= draftOf(messages[index] as ValueOf<typeof MESSAGE>, traceparent)
    return drafts[index] as BatchDraft
  }
  return andThen(node.publisher.publishAll(node.authorOf(caller), messages.length, draftAt), (accepted) => ({
    results: accepted.map(resultOf),
  }))
}

function keyOf(key: string | undefined): string {
  if (key === undefined) throw new WebMQError('E_KEY_INVALID', { detail: 'bytes need the key in the query' })
  validateKey(key)
  return key
}

function draftOf(
  message: ValueOf<typeof MESSAGE>,
  trace: string | undefined,
  idempotencyKey?: string | undefined,
  queryKey?: string | undefined,
): BatchDraft {
  const { key, id: messageId = idempotencyKey, ephemeral } = message
  if (queryKey !== undefined && queryKey !== key) {
    throw new WebMQError('E_KEY_INVALID', { detail: 'the query and the body name different keys' })
  }
  if (idempotencyKey !== undefined && messageId !== idempotencyKey) {
    throw new WebMQError('E_MESSAGE_INVALID', { detail: 'id and Idempotency-Key differ' })
  }
  validateKey(key)
  const isBinary = 'base64' in message
  const payload = isBinary ? Buffer.from(message.base64, 'base64') : Buffer.from((message.payload as JsonText).text)
  return { key, payload, isBinary, messageId, trace, ephemeral }
}
