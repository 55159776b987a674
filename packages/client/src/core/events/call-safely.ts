/**
 * Calls a function of the app. An error or a rejection goes to `report` only, so that a faulty handler stops neither
 * the other handlers nor the client.
 */
export function callSafely(call: () => unknown, report: (error: unknown) => void): void {
  try {
    const result = call()
    if (result instanceof Promise) result.catch(report)
  } catch (error) {
    report(error)
  }
}
