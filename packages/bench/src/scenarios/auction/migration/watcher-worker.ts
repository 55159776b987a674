import { parentPort, workerData } from 'node:worker_threads'
import { inParallel } from '../../../generator/in-parallel.js'
import { nowUs } from '../../../measure/clock.js'
import type { DeliveryVerdict } from '../../../measure/delivery-tracker.js'
import { EventLoopMeter } from '../../../measure/event-loop-meter.js'
import { createLatencyHistogram, recordUs } from '../../../measure/latency-histogram.js'
import { createWallClock } from '../../../measure/wall-clock.js'
import type { WatcherCommand, WatcherData, WatcherEvent, WatcherResult } from './messages.js'
import { Watcher, type WatcherSink } from './watcher.js'

/** Thread that plays some of the clients of a migration. */
const port = parentPort
if (port === null) throw new Error('watcher-worker runs as a worker thread only')

/** Clients that connect at the same time. */
const CONNECTING_COUNT = 32

const data = workerData as WatcherData
const post = (event: WatcherEvent) => port.postMessage(event)
const wallUs = createWallClock()
const meter = new EventLoopMeter()
const latency = createLatencyHistogram()
const liveAgain = createLatencyHistogram()
const seen = new Map<number, Map<number, number>>()
const counts = { deliveredCount: 0, duplicateCount: 0, reorderedCount: 0, gapCount: 0, errorCount: 0, movedCount: 0 }
let firstSeq = Number.POSITIVE_INFINITY

const sink: WatcherSink = {
  received(item: number, seq: number, sentUs: number, verdict: DeliveryVerdict) {
    const atUs = wallUs()
    if (verdict === 'duplicate') {
      counts.duplicateCount++
      return
    }
    if (verdict === 'reordered') counts.reorderedCount++
    const ofItem = seen.get(item) ?? new Map<number, number>()
    seen.set(item, ofItem)
    ofItem.set(seq, (ofItem.get(seq) ?? 0) + 1)
    if (seq < firstSeq) return
    counts.deliveredCount++
    recordUs(latency, atUs - sentUs)
  },
  liveAgain(afterUs: number) {
    counts.movedCount++
    recordUs(liveAgain, afterUs)
  },
  gap: () => counts.gapCount++,
  error: () => counts.errorCount++,
}

const watchers = data.items.map((item, index) => {
  const { urls, hasTls, firstClient } = data
  return new Watcher({ number: firstClient + index, item, urls, hasTls, sink })
})

port.on('message', (command: WatcherCommand) => {
  switch (command.type) {
    case 'begin':
      firstSeq = command.firstSeq
      meter.reset()
      return
    case 'ask':
      return post({ type: 'answer', doneCount: watchers.filter((one) => one.hasHad(command.lastSeq)).length })
    case 'finish':
      return void finish()
  }
})

const connects = createLatencyHistogram()
const startUs = nowUs()
await inParallel(watchers, CONNECTING_COUNT, async (watcher) => {
  const beganUs = nowUs()
  await watcher.connect()
  recordUs(connects, nowUs() - beganUs)
})
post({ type: 'ready', connects, durationUs: nowUs() - startUs })

async function finish(): Promise<void> {
  const result: WatcherResult = { seen, ...counts, latency, liveAgain, utilization: meter.utilization }
  post({ type: 'result', result })
  meter.stop()
  await inParallel(watchers, CONNECTING_COUNT, (watcher) => watcher.close())
  port?.close()
}
