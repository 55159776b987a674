const WINDOW_MS = 10_000

/**
 * Prints the errors that nobody handles. While the same one comes again and again, as of refused messages or of a faulty
 * handler, it prints it once in 10 s, with the number of those in between.
 */
export function createPrinter(): (error: unknown) => void {
  let lastText: string | undefined
  let endMs = 0
  let count = 0
  return (error) => {
    const text = (error as Error | undefined)?.message
    const now = Date.now()
    if (text === lastText && now < endMs) {
      count++
      return
    }
    console.error(error, ...(count ? [`and ${count} more`] : []))
    lastText = text
    endMs = now + WINDOW_MS
    count = 0
  }
}
