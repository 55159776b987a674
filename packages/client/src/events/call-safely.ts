/**
 * Calls an app's function; what it throws, or its promise rejects with, goes to `report` and no further, so that one
 * faulty handler stops neither the others nor the client.
 */
export function callSafely(call: () => unknown, report: (error: unknown) => void): void {
  try {
    const result = call()
    if (result instanceof Promise) result.catch(report)
  } catch (error) {
    report(error)
  }
}
