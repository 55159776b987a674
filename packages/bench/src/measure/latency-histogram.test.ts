import type { Histogram } from 'node:perf_hooks'
import { MessageChannel } from 'node:worker_threads'
import { describe, expect, it } from 'vitest'
import { barsOf, createLatencyHistogram, mergeHistograms, recordUs, summarizeLatency } from './latency-histogram.js'

function histogramOf(durationsUs: Iterable<number>) {
  const histogram = createLatencyHistogram()
  for (const durationUs of durationsUs) recordUs(histogram, durationUs)
  return histogram
}

describe('the latency histogram', () => {
  it('becomes bars of equal ratio, whose shares are those of all values', () => {
    const bars = barsOf(histogramOf([...new Array<number>(900).fill(100), ...new Array<number>(100).fill(10_000)]))
    expect([bars?.edgesMs.length, bars?.edgesMs[0], bars?.edgesMs[40]]).toEqual([
      41,
      expect.closeTo(0.1, 3),
      expect.closeTo(10, 1),
    ])
    expect(bars?.shares.filter((share) => share > 0)).toEqual([expect.closeTo(0.9), expect.closeTo(0.1)])
    expect(barsOf(histogramOf([7, 7]))?.shares[0]).toBe(1)
    expect(barsOf(histogramOf([]))).toBeNull()
  })

  it('gives percentiles in milliseconds within 0.1 %', () => {
    const { p50, p95, p99, max } = summarizeLatency(
      histogramOf(Array.from({ length: 10_000 }, (_, index) => index + 1)),
    )
    for (const [actual, expected] of [
      [p50, 5],
      [p95, 9.5],
      [p99, 9.9],
      [max, 10],
    ] as const) {
      expect(Math.abs((actual ?? 0) - expected) / expected).toBeLessThan(0.001)
    }
  })

  it('resolves microseconds', () => {
    expect(summarizeLatency(histogramOf([137]))).toEqual({ p50: 0.137, p95: 0.137, p99: 0.137, max: 0.137 })
  })

  it('merges without changing a percentile', () => {
    const durations = Array.from({ length: 3_000 }, (_, index) => ((index * 7_919) % 3_000) + 1)
    const parts = [0, 1, 2].map((part) => histogramOf(durations.filter((_, index) => index % 3 === part)))
    const merged = mergeHistograms([...parts, createLatencyHistogram()])
    expect(merged.count).toBe(3_000)
    expect(summarizeLatency(merged)).toEqual(summarizeLatency(histogramOf(durations)))
  })

  it('merges what another thread has sent', async () => {
    const { port1, port2 } = new MessageChannel()
    const received = new Promise<Histogram>((resolve) => port2.once('message', resolve))
    port1.postMessage(histogramOf([1_000, 3_000]))
    const merged = mergeHistograms([await received, histogramOf([2_000])])
    port1.close()
    expect(merged.count).toBe(3)
    expect(merged.max).toBeGreaterThanOrEqual(3_000)
  })

  it('has no percentiles when nothing was recorded', () => {
    expect(summarizeLatency(createLatencyHistogram())).toEqual({ p50: null, p95: null, p99: null, max: null })
  })

  it('counts what is out of its range at its ends instead of dropping it', () => {
    const histogram = histogramOf([-5, 0, 9e12])
    expect(histogram.count).toBe(3)
    expect(histogram.exceeds).toBe(0)
  })
})
