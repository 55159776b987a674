/** Half an hour, at one look in two seconds. */
const MAX_SAMPLES = 900
const MIB = 1024 ** 2

/** What this page has seen of the nodes since it was opened. Older samples are dropped. */
export class Samples {
  all = []
  /** The rows of the last answer, by node. */
  #last = new Map()

  get nodes() {
    return [...new Set(this.all.flatMap(({ nodes }) => Object.keys(nodes)))]
  }

  /** @param rows The nodes of `/api/info`. */
  add(rows, atMs = Date.now()) {
    const nodes = Object.fromEntries(rows.map((row) => [row.node, this.#sampleOf(row)]))
    this.#last = new Map(rows.map((row) => [row.node, row]))
    this.all.push({ atMs, nodes })
    if (this.all.length > MAX_SAMPLES) this.all.shift()
  }

  /** What a node of an older version does not tell is `undefined`. */
  #sampleOf(row) {
    const before = this.#last.get(row.node)
    const perSecond = (name) => {
      const passedMs = row.uptimeMs - (before?.uptimeMs ?? row.uptimeMs)
      return passedMs > 0 && name in row ? ((row[name] - before[name]) / passedMs) * 1_000 : undefined
    }
    return {
      received: row.receivedPerSecond,
      sent: row.sentPerSecond,
      connections: row.connections,
      cpu: row.cpu === undefined ? undefined : row.cpu * 100,
      memory: row.memoryBytes === undefined ? undefined : row.memoryBytes / MIB,
      eventLoop: row.eventLoopDelayMs,
      broker: row.brokerMs,
      recovered: perSecond('recovered'),
      gaps: perSecond('gaps'),
      refused: perSecond('refused'),
    }
  }
}
