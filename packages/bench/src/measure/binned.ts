/** How many of the times are in each bin. Those outside count nowhere. */
export function binned(times: Iterable<number>, startUs: number, binUs: number, binCount: number): number[] {
  const bins = Array.from({ length: binCount }, () => 0)
  for (const atUs of times) {
    const bin = Math.floor((atUs - startUs) / binUs)
    if (bin >= 0 && bin < binCount) bins[bin] = (bins[bin] ?? 0) + 1
  }
  return bins
}
