print("hangcheck")
