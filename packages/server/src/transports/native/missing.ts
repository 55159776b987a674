import { loadNativeEngine } from 'webmq-native'

/** Why the native engine does not load here, and how to get it; `undefined` when it does. */
export function reasonWhyNativeIsMissing(): string | undefined {
  try {
    loadNativeEngine()
    return undefined
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error) || error.code !== 'E_TRANSPORT_MISSING') throw error
    return 'reason' in error && typeof error.reason === 'string' ? error.reason : error.message
  }
}
