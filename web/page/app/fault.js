/** An error of the page's own, with a status as the library's have one: alerts.js knows what to do about each. */
export const fault = (status, message) => Object.assign(new Error(message), { status });
