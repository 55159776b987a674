import type { Knowledge } from './known.js'
import type { ConnectionRecord } from './record.js'
import type { Report } from './violation.js'

/** Breaches of the protocol, close codes, and requests that were not answered. */
export function examineConnections(knowledge: Knowledge, report: Report): void {
  for (const connection of knowledge.record.connections) {
    const { owner, number, breaches } = connection
    for (const { atMs, text } of breaches) report('breach', atMs, owner, `connection ${number}: ${text}`)
    examineClose(connection, knowledge, report)
    examineRequests(connection, knowledge, report)
  }
}

function examineClose(connection: ConnectionRecord, knowledge: Knowledge, report: Report): void {
  const { closed, bye, owner, number, reason = '' } = connection
  if (closed?.by !== 'server') return
  const why = whyNot(closed.code, closed.atMs, connection, knowledge)
  const where = `connection ${number} was closed with ${closed.code} ${reason}`
  if (why !== undefined) report('close-code', closed.atMs, owner, `${where}: ${why}`)
  // A connection that breaks after its `bye` has no close frame.
  else if (bye !== undefined && bye.code !== closed.code && closed.code !== 1006) {
    report('close-code', closed.atMs, owner, `${where} after bye ${bye.code}`)
  }
}

/** Says why the server has no reason to close with a code. */
function whyNot(
  code: number,
  atMs: number,
  { stalls, reason }: ConnectionRecord,
  knowledge: Knowledge,
): string | undefined {
  const isUpset = knowledge.isUpset(atMs)
  switch (code) {
    case 1001:
    case 4001:
      return isUpset && knowledge.hadFault(atMs, ['node']) ? undefined : 'no node was stopped'
    case 1006:
      return isUpset || reason !== undefined ? undefined : 'nothing had happened to it'
    case 4003:
      return isUpset || stalls.length > 0 ? undefined : 'it was not silent'
    case 4008:
      return stalls.length > 0 || knowledge.hadFault(atMs, ['client-links']) ? undefined : 'it had not stalled'
    case 4012:
      return knowledge.rules.log === 'shared' && isUpset ? undefined : 'no node can be behind'
    default:
      return 'it did nothing to deserve it'
  }
}

function examineRequests(connection: ConnectionRecord, knowledge: Knowledge, report: Report): void {
  const { requests, stalls, closed, owner, number } = connection
  const { record, rules } = knowledge
  for (const { verb, id, sentAtMs, answeredAtMs } of requests) {
    const untilMs = answeredAtMs ?? closed?.atMs ?? record.endedAtMs
    const stalledMs = stalls.reduce((sum, { fromMs, untilMs: until = untilMs }) => {
      return sum + Math.max(0, Math.min(until, untilMs) - Math.max(fromMs, sentAtMs))
    }, 0)
    const tookMs = knowledge.quietMs(sentAtMs, untilMs) - stalledMs
    if (tookMs <= rules.answerWithinMs) continue
    const rule = answeredAtMs === undefined ? 'no-answer' : 'slow-answer'
    report(rule, untilMs, owner, `connection ${number}: ${verb} ${id} waited ${Math.round(tookMs)} ms`)
  }
}
