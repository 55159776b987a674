import { writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { startRedis } from 'webmq-services'
import { svgPicture } from '../../packages/bench/src/report/svg-file.js'
import { linePlotSvg, type PlotAxis, type PlotSeries } from '../../packages/bench/src/report/svg-plot.js'
import { createScale } from '../../packages/bench/src/report/svg-scale.js'
import { type RollingOptions, rollingRestart, type Sample } from './restart.js'

const DRAIN_DELAY_MS = 2_000
const REST_MS = 3_000

/** `--clients 1500 --publishes 20 --per-second 50 --svg FILE`: prints the counts, and plots the restarts. */
export async function main(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      clients: { type: 'string', default: '1500' },
      publishes: { type: 'string', default: '20' },
      'per-second': { type: 'string', default: '50' },
      svg: { type: 'string' },
    },
  })
  await using redis = await startRedis({ isPrivate: true })
  const samples: Sample[] = []
  const options: RollingOptions = {
    nodeCount: 3,
    clientCount: Number(values.clients),
    publishesPerSecond: Number(values.publishes),
    restMs: REST_MS,
    sampled: (sample) => samples.push(sample),
    server: {
      broker: redis.url,
      history: ['#=10000'],
      insecure: true,
      drainDelayMs: DRAIN_DELAY_MS,
      drainPerSecond: Number(values['per-second']),
    },
  }
  const result = await rollingRestart(options)
  process.stdout.write(`${JSON.stringify(result, null, 2)}\n`)
  if (values.svg === undefined) return
  const foot = `${values.clients} clients, drainPerSecond ${values['per-second']}; ${cpus()[0]?.model ?? ''}, Node ${process.version}`
  await writeFile(values.svg, picture(samples, foot, `node scripts/rolling-restart.mjs ${args.join(' ')}`))
}

function picture(samples: readonly Sample[], foot: string, command: string): string {
  const names = samples[0]?.connections.map((_, index) => `node ${index + 1}`) ?? []
  const connections = names.map((name, look) => ({
    name,
    look,
    points: samples.map(({ atMs, connections }) => ({ x: atMs / 1_000, y: connections[look] ?? 0 })),
  }))
  const opened = { name: 'connections opened', look: 0, points: perSecond(samples) }
  return svgPicture(
    [
      { title: 'Connections per node', plot: plotOf('connections per node', connections) },
      { title: 'Connections opened per second', plot: plotOf('connections opened per second', [opened]) },
    ],
    foot,
    command,
  )
}

function perSecond(samples: readonly Sample[]): { x: number; y: number }[] {
  const endS = Math.floor((samples.at(-1)?.atMs ?? 0) / 1_000)
  const openedAt = (atS: number) => samples.findLast(({ atMs }) => atMs <= atS * 1_000)?.openedCount ?? 0
  return Array.from({ length: endS }, (_, second) => ({ x: second + 1, y: openedAt(second + 1) - openedAt(second) }))
}

function plotOf(title: string, series: readonly PlotSeries[]): string {
  const points = series.flatMap((each) => each.points)
  const axis = (label: string, values: readonly number[]): PlotAxis => ({
    label,
    scale: createScale('linear', values),
    format: String,
  })
  return linePlotSvg({
    title,
    x: axis(
      'seconds',
      points.map(({ x }) => x),
    ),
    y: axis(
      title,
      points.map(({ y }) => y ?? 0),
    ),
    series,
    hasMarkers: false,
  })
}
