import type { Knowledge } from './known.js'
import type { StreamRecord, ViewRecord } from './record.js'
import type { Report } from './violation.js'

/** What readers of streams were shown, and whether stops have reached writers. */
export function examineTexts(knowledge: Knowledge, report: Report): void {
  const { streams, views, stops } = knowledge.record
  const byId = new Map(streams.map((stream) => [stream.id, stream]))
  for (const stream of streams) {
    for (const { code, sentAtMs } of stream.writes) {
      if (code !== undefined && code !== 'E_STREAM_BUSY' && code !== 'E_STREAM_ENDED')
        report('refused', sentAtMs.at(-1) ?? 0, stream.writer, `${stream.id}: ${code}`)
    }
  }
  for (const view of views) {
    const stream = byId.get(view.stream ?? '')
    if (stream !== undefined) examineView(view, stream, knowledge, report)
    else if (view.stream !== undefined) report('alien', view.atMs, view.viewer, `${view.stream} was never begun`)
    if (view.isLast) examineLast(view, stream, knowledge, report)
  }
  for (const { token, askedAtMs, outcome, heardAtMs, viewer } of stops) {
    const isHeard = outcome === 'told' ? heardAtMs.length === 1 : heardAtMs.length <= 1
    if (!isHeard)
      report('stop-untrue', askedAtMs, viewer, `${token} is ${outcome}, and was heard ${heardAtMs.length} times`)
  }
}

function examineView(view: ViewRecord, stream: StreamRecord, knowledge: Knowledge, report: Report): void {
  const { viewer, atMs, sequence, status, isCut, text } = view
  const { id, writes } = stream
  const where = `${id} at ${sequence}, ${status}`
  // The bounds of the log are far away, and no data of the broker is deleted.
  if (isCut) {
    report('text-short', atMs, viewer, `${where}: it is cut`)
    return
  }
  // `lost` takes the place of what its writer may have sent.
  const written = writes.slice(0, status === 'lost' ? sequence : sequence + 1).map((write) => write.text)
  if (text !== written.join(''))
    report(
      'text-untrue',
      atMs,
      viewer,
      `${where}: ${JSON.stringify(text.slice(-80))}, written was ${JSON.stringify(written.join('').slice(-80))}`,
    )
  const kind = writes[sequence]?.kind
  const isTrue = status === 'active' ? kind === 'start' || kind === 'append' : status === 'lost' || status === kind
  if (!isTrue) report('text-untrue', atMs, viewer, `${where}: its writer has written ${kind ?? 'nothing'} there`)
  if (status === 'active') return
  // What comes after the end is nothing.
  const after = writes
    .slice(status === 'lost' ? sequence : sequence + 1)
    .find(({ ackedAtMs }) => ackedAtMs !== undefined)
  if (after !== undefined) report('text-short', atMs, viewer, `${where}: ${after.kind} was acknowledged after that`)
  if (status === 'lost') examineLost(view, stream, knowledge, report)
}

/** Its lease runs anew with each message, and none is there before it is sent. */
function examineLost(
  { viewer, atMs, sequence }: ViewRecord,
  { id, writes }: StreamRecord,
  knowledge: Knowledge,
  report: Report,
): void {
  const sentAtMs = writes[sequence - 1]?.sentAtMs[0]
  if (sentAtMs === undefined || atMs - sentAtMs >= knowledge.rules.leaseMs) return
  report('stream-lost', atMs, viewer, `${id} ${Math.round(atMs - sentAtMs)} ms after ${sequence - 1} was sent`)
}

/** In the end, everybody has the stream that was begun last, with all that was acknowledged, and its end. */
function examineLast(view: ViewRecord, stream: StreamRecord | undefined, knowledge: Knowledge, report: Report): void {
  const { viewer, atMs, key, status, sequence } = view
  const { record, rules } = knowledge
  if (status === 'active') {
    const heardAtMs = Math.max(0, ...(stream?.writes.flatMap(({ sentAtMs }) => sentAtMs) ?? []))
    if (knowledge.quietMs(heardAtMs, atMs) > 2 * rules.leaseMs + rules.answerWithinMs)
      report(
        'stream-endless',
        atMs,
        viewer,
        `${stream?.id} is active, its writer was heard at ${Math.round(heardAtMs)} ms`,
      )
  }
  const beginOf = ({ writes }: StreamRecord) => writes[0]?.ackedAtMs ?? -1
  const [newest] = record.streams
    .filter((each) => each.key === key && beginOf(each) >= 0)
    .sort((one, other) => beginOf(other) - beginOf(one))
  if (newest === undefined) return
  const last = newest.writes.findLastIndex(
    ({ ackedAtMs = Number.POSITIVE_INFINITY }) => ackedAtMs + rules.deliverWithinMs < atMs,
  )
  if (last < 0) return
  const isLater = stream !== undefined && stream !== newest && (stream.writes[0]?.sentAtMs[0] ?? 0) > beginOf(newest)
  if (stream === newest ? sequence < last : !isLater)
    report(
      'text-short',
      atMs,
      viewer,
      `${stream?.id ?? status} at ${sequence} in the end, and ${newest.id} at ${last} was acknowledged`,
    )
}
