export declare const releaseChecks: readonly { readonly name: string }[]
